"""Numbered migrations: each `.sql` file is applied together with its record, in one transaction, under one lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from checkpoint.authority.failure import DatabaseUnusable

if TYPE_CHECKING:
    from psycopg import Connection

_FOLDER = os.path.dirname(os.path.abspath(__file__))


def available() -> list[tuple[int, str]]:
    """Version and path of each migration, in order."""
    names = sorted(name for name in os.listdir(_FOLDER) if name.endswith(".sql"))
    return [(int(name.split("_", 1)[0]), os.path.join(_FOLDER, name)) for name in names]


def latest() -> int:
    """The version of the schema that this program works with."""
    return available()[-1][0]


def migrate(connection: Connection[Any], schema: str) -> None:
    """Brings the quoted `schema` to the latest version. Any number of processes may do so at once.

    The lock is taken first, and for the transaction: CREATE IF NOT EXISTS collides among concurrent sessions, and a
    session lock would stay held behind a pooler. Raises DatabaseUnusable where a table of ours was made by others.
    """
    for version, path in available():
        with connection.transaction():
            connection.execute("SET LOCAL search_path TO pg_catalog")
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", ("checkpoint " + schema,))
            if version in _applied(connection, schema):
                continue
            with open(path, encoding="utf-8") as file:
                connection.execute(file.read().replace("{schema}", schema).encode())
            connection.execute(f"INSERT INTO {schema}.workflow_checkpoint_migrations (version) VALUES (%s)", (version,))


def _applied(connection: Connection[Any], schema: str) -> set[int]:
    if not _exists(connection, schema, "workflow_checkpoint_migrations"):
        for table in ("workflow_checkpoints", "workflow_checkpoint_store"):
            if _exists(connection, schema, table):
                raise DatabaseUnusable(
                    f"the schema {schema} holds a table {table} that this program did not make; "
                    "set CHECKPOINT_SCHEMA to a schema of its own"
                )
        find = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s)"
        if connection.execute(find, (_unquoted(schema),)).fetchone() == (False,):
            connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(
            f"CREATE TABLE {schema}.workflow_checkpoint_migrations "
            "(version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT clock_timestamp())"
        )
    rows = connection.execute(f"SELECT version FROM {schema}.workflow_checkpoint_migrations").fetchall()
    return {version for (version,) in rows}


def _exists(connection: Connection[Any], schema: str, table: str) -> bool:
    """Asked of the tables of the catalog: its cache, which to_regclass asks, may be older than the lock."""
    find = (
        "SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c"
        " JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s)"
    )
    return connection.execute(find, (_unquoted(schema), table)).fetchone() == (True,)


def _unquoted(schema: str) -> str:
    return schema[1:-1].replace('""', '"')
