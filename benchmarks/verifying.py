"""`verify` from 10,000 to 200,000 rows: how its time grows, and its memory."""

from __future__ import annotations

import os
from math import log
from statistics import median
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.checkpoints import fill, steps
from benchmarks.figure import MEGABYTES, MICROSECONDS, OURS, Aim, Row
from benchmarks.memory import Memory
from benchmarks.states import States
from benchmarks.workers import line, our_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.piped import Piped
    from benchmarks.run import Run
    from benchmarks.servers import Server

TENANT = "verifying"
SIZES = (10_000, 20_000, 40_000, 80_000)
REST = 50_000  # so that all together are 200,000
STATE_BYTES = 200
STATES = 100
MOST_MB = 64.0
MOST_WHEN_DOUBLED = 2.1  # twice the time, and a little for noise
LIMIT = 1_000_000


def rows(run: Run, server: Server) -> Iterator[Row]:
    """Workflows of growing size, one after the other, then all of them as one tenant."""
    states = States(run.random("verify"))
    texts = [states.text(STATE_BYTES) for _ in range(STATES)]
    sizes = [run.times(size, least=10) for size in (*SIZES, REST)]
    total = sum(sizes)
    group = f"verify, {sizes[0]:,} to {total:,} rows"
    run.say(group)
    with our_worker(server, os.path.join(run.folder, "verify"), CHECKPOINT_REBUILD_LIMIT=str(LIMIT)) as ours:
        ours.ask(line("get", TENANT, 0))
        fill(server, (row for size in sizes for row in steps(f"{TENANT}-{size}", TENANT, texts, size)))
        _asked(ours, {"action": "rebuild", "tenant_id": TENANT})
    scopes = {size: {"workflow_id": f"{TENANT}-{size}"} for size in sizes[:-1]} | {total: {"tenant_id": TENANT}}
    seconds: dict[int, list[float]] = {size: [] for size in scopes}
    with our_worker(server, os.path.join(run.folder, "verify")) as ours:
        ours.ask(line("get", TENANT, 0))
        memory = Memory.of(ours)
        _verify(ours, sizes[0], scopes[sizes[0]])
        for _ in range(run.rounds):
            for size, scope in scopes.items():
                seconds[size].append(_verify(ours, size, scope))
        grown = None if memory is None else memory.growth()
    yield from _times(group, {size: median(each) for size, each in seconds.items()}, seconds)
    if grown is not None:
        yield Row(
            group=group,
            figure=f"verify of {total:,}: memory at the peak, above the start",
            unit=MEGABYTES,
            ours=grown,
            aim=Aim(MOST_MB, at_least=False, of_value=True),
        )


def _times(group: str, medians: dict[int, float], rounds: dict[int, list[float]]) -> Iterator[Row]:
    """The time a row at each size, and what it comes to for each doubling of the rows."""
    for size, seconds in medians.items():
        a_row = [each / size * 1e6 for each in rounds[size]]
        yield Row(
            group=group,
            figure=f"time a row, {size:,} rows",
            unit=MICROSECONDS,
            ours=seconds / size * 1e6,
            note=f"{seconds:.2f} s in all",
            rounds={OURS: a_row},
        )
    (fewest, shortest), *_, (most, longest) = medians.items()
    yield Row(
        group=group,
        figure="twice the rows: times the time",
        unit="times",
        ours=2 ** (log(longest / shortest) / log(most / fewest)),
        aim=Aim(MOST_WHEN_DOUBLED, at_least=False, of_value=True),
        note=f"on average from {fewest:,} to {most:,} rows; the aim is 2, and 0.1 for noise",
    )


def _verify(worker: Piped, size: int, scope: dict[str, str]) -> float:
    data = _asked(worker, {"action": "verify", **scope})
    if not data["consistent"] or data["pg_count"] != size:
        raise LookupError(f"verify found {data['pg_count']} of {size} rows, {data['mismatch_counts']}")
    return float(data["elapsed_sec"])


def _asked(worker: Piped, request: dict[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(worker.ask(orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE)))["data"]
    return data
