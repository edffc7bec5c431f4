"""A database that cannot serve is refused in one sentence that names the cause; mended, it serves (contract, section 6)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.faults.actions import EVERY_ACTION, NO_CACHE, WORKFLOW, ask, fails, save, serves
from tests.support.own_server import WITH_PASSWORD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

TABLES = (
    "workflow_checkpoints",
    "workflow_checkpoint_store",
    "workflow_checkpoint_migrations",
    "workflow_tenant_roles",
)
# What a role needs besides USAGE on the schema, and an action that fails without it.
GRANTS = (
    ("SELECT", "workflow_checkpoints", "get"),
    ("SELECT", "workflow_checkpoints", "list"),
    ("SELECT", "workflow_checkpoints", "verify"),
    ("INSERT", "workflow_checkpoints", "save"),
    ("UPDATE", "workflow_checkpoints", "save"),
    ("DELETE", "workflow_checkpoints", "delete"),
    ("SELECT", "workflow_checkpoint_store", "get"),
    ("SELECT", "workflow_checkpoint_migrations", "save"),
)


@pytest.fixture
def name(server: OwnServer) -> Iterator[str]:
    """A name for a role and a database of the test, dropped afterwards."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    yield name
    server.query(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
    if server.query(f"SELECT 1 FROM pg_roles WHERE rolname = '{name}'"):
        server.query(f"DROP OWNED BY {name}")
        server.query(f"DROP ROLE {name}")


def refused(worker: Worker, *words: str) -> None:
    """Every action that needs PostgreSQL fails by its own code and says these words; the health is down and says them."""
    for action, asked in EVERY_ACTION.items():
        answer = fails(worker, action)
        if asked.without:
            for word in words:
                assert word in answer["error"], f"{action}: {answer}"
            assert "\n" not in answer["error"]
    health = ask(worker, "healthcheck")["data"]
    assert health["status"] == "down"
    for word in words:
        assert word in health["pg"]["error"]


def test_too_many_connections(here: Here, server: OwnServer, name: str) -> None:
    """The server's own words; as soon as a connection is free the same worker serves."""
    server.query(f"CREATE ROLE {name} LOGIN SUPERUSER CONNECTION LIMIT 0")
    server.query(f"ALTER ROLE {name} NOSUPERUSER")
    server.query(f"GRANT CREATE ON DATABASE postgres TO {name}")
    worker = here(DATABASE_URL=server.role_url(name), **NO_CACHE)
    refused(worker, "too many connections")
    server.query(f"ALTER ROLE {name} CONNECTION LIMIT 1")
    serves(worker)


def test_a_wrong_password(here: Here, server: OwnServer, name: str) -> None:
    """The server's own words, and never the password; with the right one set the same worker serves."""
    server.query(f"CREATE ROLE {WITH_PASSWORD} LOGIN SUPERUSER PASSWORD 'the right one'")
    try:
        worker = here(DATABASE_URL=server.role_url(WITH_PASSWORD, password="Gue55edWr0ng"), **NO_CACHE)
        refused(worker, "password authentication failed")
        assert b"Gue55edWr0ng" not in b"".join(worker.raw)
        assert "Gue55edWr0ng" not in worker.stderr
        server.query(f"ALTER ROLE {WITH_PASSWORD} PASSWORD 'Gue55edWr0ng'")
        serves(worker)
        worker.kill()
        server.query(f"DROP SCHEMA IF EXISTS {name}")
    finally:
        server.query(f"REASSIGN OWNED BY {WITH_PASSWORD} TO postgres")
        server.query(f"DROP ROLE {WITH_PASSWORD}")


def test_a_database_that_does_not_exist(here: Here, server: OwnServer, name: str) -> None:
    """Named; once it is created the same worker makes its tables and serves."""
    worker = here(DATABASE_URL=server.role_url("postgres", name), **NO_CACHE)
    refused(worker, f'database "{name}" does not exist')
    server.query(f"CREATE DATABASE {name}")
    serves(worker)


def test_a_role_that_does_not_exist(here: Here, server: OwnServer, name: str) -> None:
    """Named; once it is created the same worker serves."""
    worker = here(DATABASE_URL=server.role_url(name), **NO_CACHE)
    refused(worker, f'role "{name}" does not exist')
    server.query(f"CREATE ROLE {name} LOGIN")
    server.query(f"GRANT CREATE ON DATABASE postgres TO {name}")
    serves(worker)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_an_encoding_other_than_utf8(encoding: str, here: Here, server: OwnServer, name: str) -> None:
    """Refused before anything is made in it: not every state could be kept."""
    server.query(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
    url = server.role_url("postgres", name)
    worker = here(DATABASE_URL=url, **NO_CACHE)
    refused(worker, encoding, "UTF8")
    with psycopg.connect(url) as connection:
        made = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'workflow%'").fetchall()
    assert made == []


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_that_name_that_others_made(table: str, here: Here, server: OwnServer, own_schema: str) -> None:
    """Named and left as it is; once it is gone the same worker serves."""
    server.query(f"CREATE SCHEMA {own_schema}")
    server.query(f"CREATE TABLE {own_schema}.{table} AS SELECT 'theirs' AS whose")
    worker = here(**NO_CACHE)
    refused(worker, table)
    assert server.query(f"SELECT * FROM {own_schema}.{table}") == [("theirs",)]
    server.query(f"DROP TABLE {own_schema}.{table}")
    serves(worker)


def test_tables_of_a_newer_version(here: Here, server: OwnServer, own_schema: str) -> None:
    """Not touched by an older program: it says that it is the one to be updated."""
    serves(here())
    server.query(f"INSERT INTO {own_schema}.workflow_checkpoint_migrations (version) VALUES (999)")
    worker = here(**NO_CACHE)
    refused(worker, "999", "newer", "update")
    server.query(f"DELETE FROM {own_schema}.workflow_checkpoint_migrations WHERE version = 999")
    serves(worker)


def test_a_missing_grant_is_named(here: Here, server: OwnServer, own_schema: str, name: str) -> None:
    """The privilege and its object stand in the answer of the action that lacks it; granted, the same worker serves."""
    serves(here())
    server.query(f"CREATE ROLE {name} LOGIN")
    worker = here(DATABASE_URL=server.role_url(name), **NO_CACHE)
    refused(worker, "USAGE", own_schema)
    server.query(f"GRANT USAGE ON SCHEMA {own_schema} TO {name}")
    for table in TABLES:
        server.query(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {own_schema}.{table} TO {name}")
    assert save(worker, 1)["success"]
    for privilege, table, action in GRANTS:
        server.query(f"REVOKE {privilege} ON {own_schema}.{table} FROM {name}")
        if table != "workflow_checkpoints":
            worker.kill()
            worker = here(DATABASE_URL=server.role_url(name), **NO_CACHE)
        answer = ask(worker, action)
        assert answer["code"] == EVERY_ACTION[action].without, f"{privilege} on {table}: {answer}"
        assert privilege in answer["error"], f"{privilege} on {table}: {answer}"
        assert table in answer["error"], f"{privilege} on {table}: {answer}"
        server.query(f"GRANT {privilege} ON {own_schema}.{table} TO {name}")
        assert save(worker, 1)["success"]
    assert worker.request({"action": "delete", "workflow_id": WORKFLOW, "all_steps": True})["success"]


def test_a_role_that_may_not_make_the_tables(here: Here, server: OwnServer, name: str) -> None:
    """On an empty database a role needs CREATE, and the answer says so; granted, the same worker serves."""
    server.query(f"CREATE ROLE {name} LOGIN")
    worker = here(DATABASE_URL=server.role_url(name), **NO_CACHE)
    refused(worker, "CREATE", "postgres")
    server.query(f"GRANT CREATE ON DATABASE postgres TO {name}")
    serves(worker)
