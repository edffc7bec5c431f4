"""A worker under load for a while: measured after the warm-up and at the end, and the table of both."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo

from tests.soak.holdings import Holdings, cache_bytes, holdings
from tests.soak.load import Load
from tests.support.environment import worker_environment
from tests.support.reached import Reached
from tests.support.responses import Responses
from tests.support.table import Table
from tests.support.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.database import Connection

CACHE_MAX_BYTES = 8 * 1024 * 1024
APPLICATION = "checkpoint-soak"
KEPT_REPORTS = 50
MEASUREMENTS = 3
MIB = 1024 * 1024
# What the allocator may keep more of than it did; a leak of 100 bytes a request is more after some minutes.
SLACK_BYTES = 16 * MIB
# Long enough for every kind of request and for a cache that is full.
WARM_UP_SHARE, WARM_UP_BATCHES = 0.2, 6


class Endurance:
    """`folder` is where the data folder of the worker comes to be."""

    def __init__(self, folder: Path, url: str, schema: str, admin: Connection, seed: int) -> None:
        self._folder = folder / "data"
        self._admin = admin
        self._seed = seed
        changes = {
            "DATABASE_URL": make_conninfo(url, application_name=APPLICATION),
            "CHECKPOINT_SCHEMA": schema,
            "CHECKPOINT_DATA_DIR": str(self._folder),
            "CHECKPOINT_CACHE_MAX_BYTES": str(CACHE_MAX_BYTES),
        }
        self._worker = Worker(worker_environment(changes), Responses(Reached(folder)))
        self._load = Load(self._worker, Random(seed))
        self._cache_peak = self._wal_peak = 0

    def run(self, seconds: float) -> Table:
        """The table. The worker ends with it."""
        try:
            began = time.monotonic()
            self._load.fill(CACHE_MAX_BYTES)
            batches = 0
            while batches < WARM_UP_BATCHES or time.monotonic() - began < WARM_UP_SHARE * seconds:
                self._batch()
                batches += 1
            start = self._measured()
            counted, timed = self._load.codes.total(), time.monotonic()
            while time.monotonic() - began < seconds:
                self._batch()
            rate = (self._load.codes.total() - counted) / (time.monotonic() - timed)
            end = self._measured()
            self._worker.finish()
            return self._table(seconds, start, end, rate)
        finally:
            self._worker.kill()

    @property
    def unforeseen(self) -> list[str]:
        """Answers that this load should not have got."""
        return self._load.unforeseen

    def _batch(self) -> None:
        self._load.batch()
        cache, wal = cache_bytes(self._folder)
        self._cache_peak, self._wal_peak = max(self._cache_peak, cache), max(self._wal_peak, wal)

    def _measured(self) -> Holdings:
        """The least of several measurements, each after a batch: what is held for a moment is not held."""
        taken = []
        for _ in range(MEASUREMENTS):
            self._batch()
            taken.append(holdings(self._worker.pid, self._folder, self._admin, APPLICATION))
        return Holdings(*(min(figures) for figures in zip(*taken, strict=True)))

    def _table(self, seconds: float, start: Holdings, end: Holdings, rate: float) -> Table:
        table = Table(f"soak: seed {self._seed}, {seconds:g} s, one worker, a cache of {_mib(CACHE_MAX_BYTES)} at most")
        table.tell("requests answered", self._load.codes.total())
        for code, count in sorted(self._load.codes.items(), key=lambda item: -item[1]):
            table.tell(f"  answered with {code}", count)
        table.tell("requests a second", round(rate))
        table.hold("answers that this load should not have got", len(self.unforeseen), 0)

        def row(name: str, figure: Callable[[Holdings], int], slack: int, show: Callable[[int], str] = str) -> None:
            before, after = figure(start), figure(end)
            promise = f"at most {show(before)}" + (f" + {show(slack)}" if slack else "") + ", as after the warm-up"
            table.hold(name, show(after), promise, right=after <= before + slack)

        row("resident memory at the end", lambda held: held.resident_bytes, SLACK_BYTES, _mib)
        row("open files at the end", lambda held: held.open_files, 0)
        row("threads at the end", lambda held: held.threads, 0)
        row("sessions in PostgreSQL at the end", lambda held: held.sessions, 0)
        row("files in the data folder at the end, reports aside", lambda held: held.files_on_disk, 0)
        table.hold("verify reports kept", end.reports, f"at most {KEPT_REPORTS}", right=end.reports <= KEPT_REPORTS)
        table.hold(
            "largest size of the cache file",
            _mib(self._cache_peak),
            f"at most {_mib(CACHE_MAX_BYTES)}",
            right=0 < self._cache_peak <= CACHE_MAX_BYTES,
        )
        table.tell("largest size of its -wal", _mib(self._wal_peak))
        return table


def _mib(size: int) -> str:
    return f"{size / MIB:.1f} MiB"
