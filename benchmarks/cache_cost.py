"""What the cache adds to a save: timed inside a save, and as the difference that a caller sees."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from benchmarks import raw
from benchmarks.figure import MICROSECONDS, OURS, Aim, Row, cost, in_unit
from benchmarks.interleaved import Contestant, interleaved
from benchmarks.runtime import runtime_on
from benchmarks.states import KB, States
from benchmarks.workers import asked, line, our_worker
from checkpoint import clock
from checkpoint.record import State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.run import Run
    from benchmarks.servers import Server
    from checkpoint.record import Record

WORKFLOW = "cache-cost"
STATES = 16
OPERATIONS = 100
MOST_US = 60.0
GROUP = "what the cache adds to a save, 1 KB"
WITHOUT = "the same save where no cache file can be made"


def rows(run: Run, server: Server) -> Iterator[Row]:
    """The cost by each way of measuring."""
    run.say(GROUP)
    states = States(run.random("cache cost"))
    texts = [states.text(KB) for _ in range(STATES)]
    folder = os.path.join(run.folder, "cache-cost")
    os.mkdir(folder)
    yield from _inside(run, server, folder, texts)
    yield _outside(run, server, folder, texts)


def _inside(run: Run, server: Server, folder: str, texts: list[bytes]) -> Iterator[Row]:
    """The cache write of a confirmed save: right after the wait for PostgreSQL, as in the worker, and many in a row."""
    with ExitStack() as stack:
        runtime = stack.enter_context(runtime_on(server, os.path.join(folder, "inside")))
        sqlite = stack.enter_context(raw.raw_sqlite(os.path.join(folder, "raw.db"), WORKFLOW, texts)).saves()

        def saved(number: int, *, announced: bool = True) -> tuple[Record, int]:
            """As the action does it: what can be done before is done while PostgreSQL writes."""
            state = State(WORKFLOW, f"step-{number}", "default", texts[number % STATES])
            asked_at = clock.now_ms()
            meanwhile = partial(runtime.cache.announce, asked_at) if announced else None
            return runtime.authority.upsert.save(state, None, meanwhile=meanwhile), asked_at

        def written(saved: tuple[Record, int]) -> None:
            record, asked_at = saved
            if not runtime.cache_records((record,), asked_at):
                raise TimeoutError("the cache write was not done within its budget")

        def after_a_save(number: int) -> Any:
            saved(number, announced=False)
            return sqlite.make(number)

        contestants = [Contestant(OURS, saved, written), Contestant(raw.SQLITE, after_a_save, sqlite.do)]
        written(saved(0))
        numbers = count(1)
        each = interleaved(run, GROUP, contestants, OPERATIONS, numbers, block=1)
        in_a_row = interleaved(run, f"{GROUP} in a row", contestants, OPERATIONS, numbers)
    aim = Aim(MOST_US, at_least=False, of_value=True)
    yield cost(each, GROUP, "the cache write, right after the wait for PostgreSQL", raw.SQLITE, aim)
    yield cost(in_a_row, GROUP, "the cache write, many in a row", raw.SQLITE)


def _outside(run: Run, server: Server, folder: str, texts: list[bytes]) -> Row:
    """Through the pipe, with the cache and with a data folder that cannot be made."""
    in_the_way = os.path.join(folder, "a-file")
    with open(in_the_way, "wb"):
        pass

    def make(number: int) -> bytes:
        return line("save", WORKFLOW, number, texts[number % STATES])

    with (
        our_worker(server, os.path.join(folder, "outside")) as usual,
        our_worker(server, os.path.join(in_the_way, "data")) as without,
    ):
        contestants = [asked(usual, OURS, make), asked(without, WITHOUT, make)]
        taken = interleaved(run, f"{GROUP} outside", contestants, OPERATIONS, count())
    row = cost(taken, GROUP, "save through the pipe", WITHOUT)
    difference = in_unit(taken.median(OURS) - taken.median(WITHOUT), MICROSECONDS)
    row.note = f"the difference is {difference:.0f} us; without a file the worker still tries, each time"
    return row
