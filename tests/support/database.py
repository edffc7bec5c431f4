"""Schemas and databases of one test each, in the server of the run."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator

Connection = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def fresh_schema(admin: Connection) -> Iterator[str]:
    """A name that no schema has yet; what came to be under it is dropped at the end."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    yield name
    admin.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name)))


@contextmanager
def fresh_database(admin: Connection, url: str) -> Iterator[str]:
    """The connection string of a new, empty database in the server of `url`; dropped at the end."""
    name = f"test_{uuid.uuid4().hex[:16]}"
    admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(name)))
    yield make_conninfo(url, dbname=name)
    admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def connection(url: str, schema: str | None = None) -> Iterator[Connection]:
    """An autocommit connection of the test's own, whose search_path is `schema` alone, where one is given."""
    with psycopg.connect(url, autocommit=True) as opened:
        if schema is not None:
            opened.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        yield opened
