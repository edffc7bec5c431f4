"""`rebuild` of 10,000 rows of 1 KB, beside the least there is to do: COPY out, executemany in."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import orjson
import psycopg

from benchmarks.checkpoints import fill, steps
from benchmarks.figure import MILLISECONDS, OURS, Row, at_most, cost
from benchmarks.interleaved import Contestant, interleaved
from benchmarks.raw import SQLITE_TABLE
from benchmarks.states import KB, States
from benchmarks.workers import line, our_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.run import Run
    from benchmarks.servers import Server

ROWS = 10_000
TIMES = 3
TENANT = "rebuilding"
BARE_COPY = "COPY out, executemany in"
COPY_OUT = """
COPY (SELECT workflow_id, step_id, state_data::text, revision, (extract(epoch FROM updated_at) * 1000000)::bigint
      FROM workflow_checkpoints WHERE tenant_id = '{tenant}') TO STDOUT
"""
INSERT = "INSERT INTO checkpoints VALUES (?, ?, '{tenant}', ?, ?, ?)"


def rows(run: Run, server: Server) -> Iterator[Row]:
    """One figure, of the whole request through the pipe."""
    many = run.times(ROWS, least=10)
    group = f"rebuild, {many:,} rows of 1 KB"
    run.say(group)
    states = States(run.random("rebuild"))
    texts = [states.text(KB) for _ in range(100)]
    request = orjson.dumps({"action": "rebuild", "tenant_id": TENANT}, option=orjson.OPT_APPEND_NEWLINE)
    with our_worker(server, os.path.join(run.folder, "rebuild")) as ours:
        ours.ask(line("get", TENANT, 0))
        fill(server, steps(TENANT, TENANT, texts, many))

        def rebuild(_: object) -> None:
            data = orjson.loads(ours.ask(request))["data"]
            if data["rebuilt_count"] != many:
                raise LookupError(f"{data['rebuilt_count']} of {many} rows were rebuilt")

        contestants = [
            Contestant(OURS, lambda _: None, rebuild, ours.cpu),
            Contestant(BARE_COPY, lambda _: None, lambda _: _copy(server, os.path.join(run.folder, "copy.db"), many)),
        ]
        taken = interleaved(run, group, contestants, TIMES, count(), block=1)
    yield cost(taken, group, "rebuild", BARE_COPY, at_most(2), unit=MILLISECONDS)


def _copy(server: Server, path: str, many: int) -> None:
    with psycopg.connect(server.url) as connection, closing(sqlite3.connect(path, isolation_level=None)) as cache:
        cache.execute("PRAGMA journal_mode = WAL")
        cache.execute("PRAGMA synchronous = OFF")
        cache.execute("DROP TABLE IF EXISTS checkpoints")
        cache.execute("BEGIN")
        cache.execute(SQLITE_TABLE)
        with connection.cursor().copy(COPY_OUT.format(tenant=TENANT)) as copy:
            copy.set_types(["text", "text", "text", "int8", "int8"])
            cache.executemany(INSERT.format(tenant=TENANT), copy.rows())
        cache.execute("COMMIT")
        if cache.execute("SELECT count(*) FROM checkpoints").fetchone() != (many,):
            raise LookupError("not every row was copied")
