"""What a worker holds in memory: idle, and at the peak of serving a large state. Only Linux tells."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from benchmarks.figure import MEGABYTES, Aim, Row
from benchmarks.states import KB, States
from benchmarks.workers import line, our_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.piped import Piped
    from benchmarks.run import Run
    from benchmarks.servers import Server

MB = 1024 * KB
LARGE = 8 * MB
MOST_IDLE_MB = 60.0
MOST_TIMES = 6.0
RESET_PEAK = b"5"
WORKFLOW = "memory"
ACTIONS = ("save", "get", "cached_get")
GROUP = "memory of the worker"


class Memory(msgspec.Struct, frozen=True):
    """The resident memory of a process, in bytes, at the moment from which growth is counted."""

    pid: int
    start: int

    @classmethod
    def of(cls, worker: Piped) -> Memory | None:
        """The memory now; its peak counts from here. None where the system does not tell."""
        folder = f"/proc/{worker.pid}"
        if not os.path.exists(f"{folder}/clear_refs"):
            return None
        with open(f"{folder}/clear_refs", "wb") as file:
            file.write(RESET_PEAK)
        return cls(worker.pid, _status(worker.pid, "VmRSS"))

    def peak(self) -> int:
        """The most since then, in bytes."""
        return _status(self.pid, "VmHWM")

    def growth(self) -> float:
        """The most since then above the start, in megabytes."""
        return (self.peak() - self.start) / MB


def rows(run: Run, server: Server) -> Iterator[Row]:
    """An idle worker after one request of each kind, then an 8 MB state in workers of their own."""
    run.say(GROUP)
    states = States(run.random("memory"))
    small, large = states.text(KB), states.text(run.times(LARGE, least=KB))
    folder = os.path.join(run.folder, "memory")
    with our_worker(server, folder) as worker:
        for action in ACTIONS:
            worker.ask(line(action, WORKFLOW, 0, small if action == "save" else None))
        idle = Memory.of(worker)
        if idle is None:
            return
        worker.ask(line("save", WORKFLOW, 1, large))
    yield Row(
        group=GROUP,
        figure="idle, after a save, a get and a hit",
        unit=MEGABYTES,
        ours=idle.start / MB,
        aim=Aim(MOST_IDLE_MB, at_least=False, of_value=True),
    )
    for action in ACTIONS:
        with our_worker(server, folder) as worker:
            worker.ask(line(action, WORKFLOW, 0, small if action == "save" else None))
            memory = Memory.of(worker)
            worker.ask(line(action, WORKFLOW, 1, large if action == "save" else None))
            if memory is not None:
                yield _peak(action, memory, len(large))


def _peak(action: str, memory: Memory, size: int) -> Row:
    peak = memory.peak()
    return Row(
        group=GROUP,
        figure=f"{action} of {size / MB:.3g} MB: growth at the peak, times the size",
        unit="times",
        ours=(peak - memory.start) / size,
        aim=Aim(MOST_TIMES, at_least=False, of_value=True),
        note=f"{peak / MB:.0f} MB in all, {peak / size:.1f} times the size; before {memory.start / MB:.0f} MB",
    )


def _status(pid: int, name: str) -> int:
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        found = re.search(rf"^{name}:\s+(\d+) kB$", file.read(), re.MULTILINE)
    return int(found[1]) * KB if found else 0
