"""Where the time of one `save`, `get` and `cached_get` goes: the worker's own steps, timed one after the other."""

from __future__ import annotations

import os
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.runtime import runtime_on
from benchmarks.states import KB, States
from benchmarks.workers import line
from checkpoint import envelope
from checkpoint.dispatch import Dispatcher

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.run import Run
    from benchmarks.servers import Server
    from checkpoint.runtime import Runtime

WORKFLOW = "anatomy"
REQUESTS = {1: 300, 100: 60}
STATES = 16
KEPT = 50
ACTIONS = ("save", "get", "cached_get")


class Part(msgspec.Struct, frozen=True):
    """A step of a request, and the median of what it took, in microseconds."""

    action: str
    kilobytes: int
    step: str
    us: float


class _Stopwatch:
    """Adds up what happens inside calls that it stands around."""

    def __init__(self) -> None:
        self.elapsed = 0.0

    def around(self, owner: Any, name: str) -> None:
        """Stands around a method of this one object."""
        method: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return method(*arguments, **named)
            finally:
                self.elapsed += time.perf_counter() - started

        setattr(owner, name, timed)

    def taken(self) -> float:
        """What came together since the last call."""
        elapsed, self.elapsed = self.elapsed, 0.0
        return elapsed


def parts(run: Run, server: Server, kilobytes: int) -> list[Part]:
    """The steps of each action on states of that size, in the order in which they happen."""
    run.say(f"where the time goes, {kilobytes} KB, {server.about}")
    states = States(run.random("anatomy"))
    texts = [states.text(kilobytes * KB) for _ in range(STATES)]
    kept = run.times(KEPT, least=2)
    with runtime_on(server, os.path.join(run.folder, f"anatomy-{kilobytes}-{server.version}")) as runtime:
        dissection = _Dissection(runtime)
        for number in range(kept):
            dissection.serve(line("save", WORKFLOW, number, texts[number % STATES]))
        found: list[Part] = []
        for action in ACTIONS:
            rows = []
            for number in range(run.times(REQUESTS[kilobytes], least=5)):
                state = texts[number % STATES] if action == "save" else None
                rows.append(dissection.serve(line(action, WORKFLOW, number % kept, state)))
            found += [Part(action, kilobytes, step, median(row[step] for row in rows) * 1e6) for step in rows[0]]
    return found


class _Dissection:
    def __init__(self, runtime: Runtime) -> None:
        self._dispatcher = Dispatcher(runtime)
        self._encoder = envelope.Encoder()
        self._postgresql, self._sqlite = _Stopwatch(), _Stopwatch()
        self._postgresql.around(runtime.authority, "get")
        self._postgresql.around(runtime.authority.upsert, "save")
        self._sqlite.around(runtime, "cache_records")
        self._sqlite.around(runtime.cache, "find")

    def serve(self, request: bytes) -> dict[str, float]:
        """Serves one line as the worker does; the seconds of each step."""
        started = time.perf_counter()
        decoded = envelope.decode(request.rstrip(b"\n"))
        read = time.perf_counter()
        answer = self._dispatcher.serve(decoded)
        served = time.perf_counter()
        if isinstance(answer, Exception):
            raise answer
        self._encoder.success(answer)
        ended = time.perf_counter()
        postgresql, sqlite = self._postgresql.taken(), self._sqlite.taken()
        return {
            "line into request": read - started,
            "validation, dispatch": served - read - postgresql - sqlite,
            "PostgreSQL": postgresql,
            "SQLite": sqlite,
            "answer into line": ended - served,
            "all": ended - started,
        }
