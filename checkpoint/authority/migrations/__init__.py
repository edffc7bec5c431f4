"""Numbered migrations: each `.sql` file is applied together with its record, in one transaction, under one lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from checkpoint import sqlfile
from checkpoint.authority.failure import DatabaseUnusable

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    statements = _statements(schema)
    for version, path in available():
        with connection.transaction():
            connection.execute(statements["search_nowhere"])
            connection.execute(statements["lock"], {"name": f"checkpoint {schema}"})
            if version in _applied(connection, schema, statements):
                continue
            with open(path, encoding="utf-8") as file:
                connection.execute(file.read().replace("{schema}", schema).encode())
            connection.execute(statements["record"], {"version": version})


def _statements(schema: str) -> dict[str, bytes]:
    texts = sqlfile.load(f"{_FOLDER}.sql")
    return {name: text.replace("{schema}", schema).encode() for name, text in texts.items()}


def _applied(connection: Connection[Any], schema: str, statements: Mapping[str, bytes]) -> set[int]:
    def exists(name: str, **parameters: str) -> bool:
        row = connection.execute(statements[name], {"schema": _unquoted(schema), **parameters}).fetchone()
        return row == (True,)

    if not exists("table_exists", table="workflow_checkpoint_migrations"):
        for table in ("workflow_checkpoints", "workflow_checkpoint_store"):
            if exists("table_exists", table=table):
                raise DatabaseUnusable(
                    f"the schema {schema} holds a table {table} that this program did not make; "
                    "set CHECKPOINT_SCHEMA to a schema of its own"
                )
        if not exists("schema_exists"):
            connection.execute(statements["make_schema"])
        connection.execute(statements["make_record"])
    return {version for (version,) in connection.execute(statements["applied"]).fetchall()}


def _unquoted(schema: str) -> str:
    return schema[1:-1].replace('""', '"')
