"""Any number of workers may start on an empty database, with any action, under any search_path (contract, section 6)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pytest

from tests.faults.actions import EVERY_ACTION, ask, save, serves, works

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer

WORKERS = 8


@pytest.fixture
def role(server: OwnServer) -> Iterator[str]:
    """The name of a role that may log in and has no right of its own."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    server.query(f"CREATE ROLE {name} LOGIN")
    yield name
    server.query(f"DROP ROLE {name}")


@pytest.fixture
def database(server: OwnServer, role: str) -> Iterator[str]:
    """The name of a database of the test's own, empty."""
    server.query(f"CREATE DATABASE {role}")
    yield role
    server.query(f"DROP DATABASE {role} WITH (FORCE)")


def test_eight_workers_start_at_once_on_an_empty_database(
    here: Here, server: OwnServer, database: str, tmp_path: Path
) -> None:
    """They make the tables together: each answers its first save with success, and the tables are made once."""
    url = server.role_url("postgres", database)
    workers = [here(DATABASE_URL=url, CHECKPOINT_DATA_DIR=str(tmp_path / str(number))) for number in range(WORKERS)]
    for worker in workers:
        assert ask(worker, "cache")["success"]  # the process has started, and waits without a connection
    for number, worker in enumerate(workers):
        worker.send({"action": "save", "workflow_id": f"wf-{number}", "step_id": "s", "state_data": {"n": number}})
    for worker in workers:
        answer = worker.read_line()
        assert answer["success"], answer
        assert answer["data"]["revision"] == 1
    assert ask(workers[0], "workflows")["data"]["count"] == WORKERS


def test_any_action_may_be_the_first_on_an_empty_database(here: Here, server: OwnServer, own_schema: str) -> None:
    """Each action succeeds as the first request of a process on a schema that does not exist."""
    workers = {action: here(CHECKPOINT_SCHEMA=f"{own_schema}_{action}") for action in EVERY_ACTION}
    for action, worker in workers.items():
        worker.send({"action": action, **EVERY_ACTION[action].request})
    for action, worker in workers.items():
        answer = worker.read_line()
        assert answer["code"] == EVERY_ACTION[action].served, f"{action}: {answer}"
        serves(worker)
        worker.kill()
        server.query(f"DROP SCHEMA {own_schema}_{action} CASCADE")


def test_a_role_that_may_not_change_tables_works_on_current_ones(
    here: Here, server: OwnServer, own_schema: str, role: str, database: str
) -> None:
    """With the rows' own rights and no other it reads and writes, and nothing is tried that it may not."""
    url = server.role_url("postgres", database)
    serves(here(DATABASE_URL=url))
    for grant in (
        f"USAGE ON SCHEMA {own_schema}",
        f"SELECT, INSERT, UPDATE, DELETE ON {own_schema}.workflow_checkpoints",
        f"SELECT ON {own_schema}.workflow_checkpoint_store, {own_schema}.workflow_checkpoint_migrations",
    ):
        server.query(f"GRANT {grant} TO {role}", url)
    worker = here(DATABASE_URL=server.role_url(role, database))
    for action in EVERY_ACTION:
        works(worker, action)
    serves(worker)


@pytest.mark.parametrize("search_path", ["''", "pg_catalog", "elsewhere, pg_catalog"])
def test_no_statement_depends_on_the_search_path(
    search_path: str, here: Here, server: OwnServer, database: str
) -> None:
    """An empty one, one without our schema, one with functions and tables of our names in front: all actions work."""
    url = server.role_url("postgres", database)
    for statement in (
        "CREATE SCHEMA elsewhere",
        "CREATE TABLE elsewhere.workflow_checkpoints (theirs text)",
        "CREATE FUNCTION elsewhere.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $$ SELECT 'epoch'::timestamptz $$",
        f"ALTER DATABASE {database} SET search_path = {search_path}",
    ):
        server.query(statement, url)
    worker = here(DATABASE_URL=url)
    for action in EVERY_ACTION:
        works(worker, action)
    saved = save(worker, 1)["data"]
    assert saved["updated_at"] > "2020"
    serves(worker)
