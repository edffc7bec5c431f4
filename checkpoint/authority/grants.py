"""Which rights the role of DATABASE_URL lacks, so that a refusal can name them (contract, section 6)."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg

from checkpoint import sqlfile

if TYPE_CHECKING:
    from psycopg import Connection

_TABLES = {
    "workflow_checkpoints": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "workflow_checkpoint_store": ("SELECT",),
    "workflow_checkpoint_migrations": ("SELECT",),
    "workflow_tenant_roles": ("SELECT",),
}


def missing(connection: Connection[Any], schema: str) -> str | None:
    """The GRANT that would help, for the quoted `schema`; None where nothing seems to be missing."""
    try:
        with connection.cursor(row_factory=psycopg.rows.tuple_row) as cursor:
            row = cursor.execute(_statements()["role"], {"schema": schema}).fetchone()
            role, database, namespace, may_create = row or ("", "", None, False)
            if namespace is None:
                return None if may_create else f"GRANT CREATE ON DATABASE {database} TO {role}"
            return _missing_in_schema(cursor, schema, namespace, role)
    except psycopg.Error:
        return None


def _missing_in_schema(cursor: psycopg.Cursor[Any], schema: str, namespace: int, role: str) -> str | None:
    parameters = {"namespace": namespace, "names": list(_TABLES)}
    tables: dict[str, int] = dict(cursor.execute(_statements()["tables"], parameters).fetchall())
    needed = ["USAGE"] if tables else ["USAGE", "CREATE"]
    lacking = [right for right in needed if not _has(cursor, "schema", namespace, right)]
    grants = [f"GRANT {', '.join(lacking)} ON SCHEMA {schema} TO {role}"] if lacking else []
    for name, oid in tables.items():
        lacking = [right for right in _TABLES[name] if not _has(cursor, "table", oid, right)]
        if lacking:
            grants.append(f"GRANT {', '.join(lacking)} ON {schema}.{name} TO {role}")
    return "; ".join(grants) or None


def _has(cursor: psycopg.Cursor[Any], kind: str, oid: int, right: str) -> bool:
    return cursor.execute(_statements()[f"{kind}_right"], {"oid": oid, "right": right}).fetchone() == (True,)


@cache
def _statements() -> dict[str, bytes]:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "grants.sql")
    return {name: text.encode() for name, text in sqlfile.load(path).items()}
