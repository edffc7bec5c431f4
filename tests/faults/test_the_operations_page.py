"""The operations page does what it says (docs/operations.md)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import psycopg
import pytest

from checkpoint.errors import CODES
from tests.faults.actions import EVERY_ACTION, works
from tests.support.asking import done, refused
from tests.support.descriptions import REPOSITORY, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer

PAGE = REPOSITORY / "docs" / "operations.md"
BLOCKS = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
DATABASE = "operations_page"
ROLES = ("worker", "worker_acme")


@pytest.fixture
def url(server: OwnServer) -> Iterator[str]:
    """A database of the test's own; the roles of the page are gone afterwards."""
    server.query(f"CREATE DATABASE {DATABASE}")
    url = server.role_url("postgres", DATABASE)
    yield url
    server.query(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    for role in ROLES:
        server.query(f"DROP ROLE IF EXISTS {role}")


def _statements(containing: str) -> list[str]:
    """The statements of the one block of the page that contains these words."""
    (block,) = (block for block in BLOCKS if containing in block)
    return [statement for statement in block.split(";\n") if statement.strip()]


def test_every_statement_of_the_page_runs_in_its_order(here: Here, server: OwnServer, url: str) -> None:
    """Copied from the page to a database with the tables in it, none fails."""
    works(here(DATABASE_URL=url, CHECKPOINT_SCHEMA="public"), "save")
    with psycopg.connect(url, autocommit=True) as connection:
        for block in BLOCKS:
            for statement in block.split(";\n"):
                if statement.strip():
                    connection.execute(statement.encode())
    assert len(BLOCKS) >= 8


def test_the_roles_of_the_page_have_what_they_need_and_no_more(here: Here, server: OwnServer, url: str) -> None:
    """`worker` serves every action and sees all; `worker_acme`, pinned or not, has acme alone."""
    owner = here(DATABASE_URL=url, CHECKPOINT_SCHEMA="public")
    for tenant in ("acme", "other"):
        done(owner, "save", workflow_id=f"of {tenant}", step_id="s", tenant_id=tenant, state_data={})
    for statements in map(_statements, ("CREATE ROLE worker LOGIN", "TO worker;", "CREATE ROLE worker_acme")):
        for statement in statements:
            server.query(statement, url)
    worker = here(DATABASE_URL=server.role_url("worker", DATABASE), CHECKPOINT_SCHEMA="public")
    assert {row["tenant_id"] for row in done(worker, "workflows")["workflows"]} == {"acme", "other"}
    for action in EVERY_ACTION:
        works(worker, action)
    acme = {"DATABASE_URL": server.role_url("worker_acme", DATABASE), "CHECKPOINT_SCHEMA": "public"}
    for pin in ({}, {"CHECKPOINT_TENANT": "acme"}):
        bound = here(**acme, **pin)
        assert [row["tenant_id"] for row in done(bound, "workflows")["workflows"]] == ["acme"]
        assert done(bound, "healthcheck")["pg"]["row_security"] is True
        assert (
            refused(bound, "save", workflow_id="w", step_id="s", tenant_id="other", state_data={})[0] == "TENANT_DENIED"
        )
    (unbound,) = (statement for block in BLOCKS for statement in block.split(";\n") if "rolbypassrls" in statement)
    assert ("worker", False) in server.query(unbound, url)
    assert "worker_acme" not in {name for name, _ in server.query(unbound, url)}


def test_a_database_set_back_in_time_is_not_covered_by_its_caches(here: Here, server: OwnServer, url: str) -> None:
    """After the statement of the page no cache serves a state that the restored database does not have."""
    worker = here(DATABASE_URL=url, CHECKPOINT_SCHEMA="public")
    key = {"workflow_id": "wf", "step_id": "s"}
    done(worker, "save", **key, state_data={"n": 1})
    server.query("CREATE TABLE backup AS SELECT * FROM workflow_checkpoints", url)
    done(worker, "save", **key, state_data={"n": 2})
    assert done(worker, "cached_get", **key)["state_data"] == {"n": 2}
    server.query("DELETE FROM workflow_checkpoints", url)
    server.query("INSERT INTO workflow_checkpoints OVERRIDING SYSTEM VALUE SELECT * FROM backup", url)
    for statement in _statements("store_id = gen_random_uuid()"):
        server.query(statement, url)
    server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'checkpoint-manager'")
    for reader in (worker, here(DATABASE_URL=url, CHECKPOINT_SCHEMA="public")):
        assert done(reader, "get", **key)["state_data"] == {"n": 1}
        assert done(reader, "cached_get", **key)["state_data"] == {"n": 1}
    assert done(worker, "verify")["mismatch_counts"]["data_mismatch"] == 0


def test_the_page_has_every_code_once() -> None:
    """Each code of the wire has a row that says what it asks of the operator, in the order of the program."""
    assert [row[0] for row in table(PAGE, "code")] == list(CODES)
