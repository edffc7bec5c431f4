"""The drivers alone, in this process: no pipe, no checks. What any product on top of them pays at least."""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import orjson
import psycopg
from psycopg.types.json import Jsonb

from benchmarks import bare_worker
from benchmarks.interleaved import Contestant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.servers import Server

PSYCOPG, SQLITE = "raw psycopg, in process", "raw sqlite3, in process"
ROUND_TRIP, FSYNC = "one round trip (SELECT 1)", "one fsync of 8 KB"
PAGE = 8192
SQLITE_TABLE = """
CREATE TABLE checkpoints (
    workflow_id TEXT, step_id TEXT, tenant_id TEXT, state_data BLOB, revision INTEGER, updated_at INTEGER,
    PRIMARY KEY (workflow_id, step_id)
)
"""
SQLITE_UPSERT = """
INSERT INTO checkpoints VALUES (?, ?, 'default', ?, 1, ?)
ON CONFLICT (workflow_id, step_id) DO UPDATE
SET state_data = excluded.state_data, revision = revision + 1, updated_at = excluded.updated_at
"""
SQLITE_SELECT = "SELECT * FROM checkpoints WHERE workflow_id = ? AND step_id = ?"


class Psycopg:
    """The bare worker's statements, from and to Python objects."""

    def __init__(self, connection: psycopg.Connection[Any], workflow_id: str, states: Sequence[Any]) -> None:
        connection.execute(bare_worker.TABLE)
        self._connection = connection
        self._workflow_id = workflow_id
        self._states = states

    def saves(self) -> Contestant:
        """One upsert of jsonb each."""
        return Contestant(PSYCOPG, self._key_and_state, self._save)

    def reads(self) -> Contestant:
        """One select by key each."""
        return Contestant(PSYCOPG, lambda number: (self._workflow_id, f"step-{number}"), self._read)

    def round_trips(self) -> Contestant:
        """A statement that does nothing, there and back."""
        return Contestant(ROUND_TRIP, lambda _: None, lambda _: self._connection.execute("SELECT 1").fetchone())

    def _key_and_state(self, number: int) -> tuple[str, str, Any]:
        return self._workflow_id, f"step-{number}", self._states[number % len(self._states)]

    def _save(self, values: tuple[str, str, Any]) -> object:
        *key, state = values
        return self._connection.execute(bare_worker.UPSERT, (*key, Jsonb(state, orjson.dumps))).fetchone()

    def _read(self, key: tuple[str, str]) -> object:
        return self._connection.execute(bare_worker.SELECT, key).fetchone()


@contextmanager
def raw_psycopg(server: Server, workflow_id: str, states: Sequence[Any]) -> Iterator[Psycopg]:
    """On a connection of its own; JSON is parsed by orjson, as in the bare worker."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        psycopg.types.json.set_json_loads(orjson.loads, connection)
        yield Psycopg(connection, workflow_id, states)


class Sqlite:
    """One table on one connection, each statement a transaction, no fsync: what a cache costs at least."""

    def __init__(self, connection: sqlite3.Connection, workflow_id: str, states: Sequence[bytes]) -> None:
        connection.execute(SQLITE_TABLE)
        self._connection = connection
        self._workflow_id = workflow_id
        self._states = states

    def saves(self) -> Contestant:
        """One upsert each."""
        return Contestant(SQLITE, self._values, lambda values: self._connection.execute(SQLITE_UPSERT, values))

    def reads(self) -> Contestant:
        """One select by key each."""
        return Contestant(
            SQLITE,
            lambda number: (self._workflow_id, f"step-{number}"),
            lambda key: self._connection.execute(SQLITE_SELECT, key).fetchone(),
        )

    def _values(self, number: int) -> tuple[str, str, bytes, int]:
        return self._workflow_id, f"step-{number}", self._states[number % len(self._states)], time.time_ns()


@contextmanager
def raw_sqlite(path: str, workflow_id: str, states: Sequence[bytes]) -> Iterator[Sqlite]:
    """In a file of its own, WAL, `synchronous=OFF`, as the product's cache has it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        yield Sqlite(connection, workflow_id, states)


@contextmanager
def fsyncs(folder: str) -> Iterator[Contestant]:
    """A page written and synced, over and over: what the disk asks of every commit."""
    descriptor = os.open(os.path.join(folder, "fsync"), os.O_RDWR | os.O_CREAT, 0o600)

    def do(number: int) -> None:
        os.pwrite(descriptor, bytes(PAGE), PAGE * (number % 1000))
        os.fdatasync(descriptor)

    try:
        for number in range(1000):
            os.pwrite(descriptor, bytes(PAGE), PAGE * number)
        os.fsync(descriptor)
        yield Contestant(FSYNC, int, do)
    finally:
        os.close(descriptor)
