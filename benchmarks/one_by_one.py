"""A caller that waits for each answer: `save`, `get` and `cached_get` beside everything else that could be used."""

from __future__ import annotations

import os
from contextlib import ExitStack
from itertools import count, cycle
from typing import TYPE_CHECKING

import orjson

from benchmarks import langgraph_savers as langgraph
from benchmarks import raw
from benchmarks.figure import OURS, Aim, Row, at_least, at_most, cost, speed
from benchmarks.interleaved import interleaved
from benchmarks.servers import analyze
from benchmarks.states import KB, States
from benchmarks.workers import BARE, OBJECTS, asked, asked_with_objects, bare_worker, line, our_worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from benchmarks.interleaved import Contestant, Taken
    from benchmarks.run import Run
    from benchmarks.servers import Server

    class InProcess(Protocol):
        """A store without a process of its own."""

        def saves(self) -> Contestant:
            """What saves a step."""

        def reads(self) -> Contestant:
            """What reads a step."""


STATES = 16
KEPT = {1: 50, 100: 20}  # steps that are read, and saved over
OPERATIONS = {1: 200, 100: 40}
AIMS = {
    (1, "save", BARE): at_most(1.25),
    (1, "get", BARE): at_most(0.95),
    (1, "cached_get", BARE): at_most(0.35),
    (1, "save", langgraph.POSTGRES_SAVER): at_least(1),
    (100, "save", BARE): at_least(2.5),
    (100, "get", BARE): at_least(4),
    (100, "save", langgraph.POSTGRES_SAVER): at_least(2),
}
MORE_IS_BETTER = {langgraph.POSTGRES_SAVER, langgraph.SQLITE_SAVER}


def rows(run: Run, server: Server, kilobytes: int, *, with_aims: bool) -> Iterator[Row]:
    """The figures at that size of state; `with_aims` where this server is the one that the aims are about."""
    group = f"one by one, {kilobytes} KB, {server.about}"
    run.say(group)
    states = States(run.random(f"{kilobytes} KB"))
    values = [states.value(kilobytes * KB) for _ in range(STATES)]
    texts = [orjson.dumps(value) for value in values]
    kept = run.times(KEPT[kilobytes], least=2)
    workflow = f"one-by-one-{kilobytes}"
    folder = os.path.join(run.folder, f"one-by-one-{kilobytes}-{server.version}")
    os.mkdir(folder)
    with ExitStack() as stack:
        ours = stack.enter_context(our_worker(server, os.path.join(folder, "data")))
        bare = stack.enter_context(bare_worker(server))
        psycopg = stack.enter_context(raw.raw_psycopg(server, f"raw-{workflow}", values))
        sqlite = stack.enter_context(raw.raw_sqlite(os.path.join(folder, "raw.db"), workflow, texts))
        savers = stack.enter_context(langgraph.savers(server, os.path.join(folder, "saver.db"), workflow, values))

        def save(number: int) -> bytes:
            return line("save", workflow, number, texts[number % STATES])

        def reading(action: str) -> Callable[[int], bytes]:
            return lambda number: line(action, workflow, number)

        in_process: list[InProcess] = [psycopg, sqlite, *savers]
        contestants = {
            "save": [
                asked(ours, OURS, save),
                asked(bare, BARE, save),
                asked_with_objects(ours, "save", f"objects-{workflow}", values),
                *(each.saves() for each in in_process),
            ],
            "get": [
                asked(ours, OURS, reading("get")),
                asked(bare, BARE, reading("get")),
                asked_with_objects(ours, "get", f"objects-{workflow}"),
                *(each.reads() for each in in_process),
            ],
            "cached_get": [
                asked(ours, OURS, reading("cached_get")),
                asked(bare, BARE, reading("get")),
                sqlite.reads(),
            ],
        }
        times = OPERATIONS[kilobytes]
        for each in contestants["save"]:
            for number in range(kept):
                each.do(each.make(number))
        new = interleaved(run, f"{group} save", contestants["save"], times, count(kept))
        over = interleaved(run, f"{group} save over", contestants["save"][:2], times, cycle(range(kept)))
        analyze(server)
        got = interleaved(run, f"{group} get", contestants["get"], times, cycle(range(kept)))
        hit = interleaved(run, f"{group} cached_get", contestants["cached_get"], times, cycle(range(kept)))
    for figure, taken in (("save", new), ("get", got), ("cached_get", hit)):
        for contestant in contestants[figure]:
            if contestant.name not in (OURS, OBJECTS):
                aim = AIMS.get((kilobytes, figure, contestant.name)) if with_aims else None
                yield _beside(taken, group, figure, contestant, aim)
        if figure == "save":
            yield _beside(over, group, "save over an existing step", contestants["save"][1], None)


def _beside(taken: Taken, group: str, figure: str, yardstick: Contestant, aim: Aim | None) -> Row:
    """As a factor of cost, or of speed where the aim is one. Beside a library our figure is the one with objects."""
    ours = OBJECTS if OBJECTS in taken.seconds and yardstick.name not in (BARE, raw.SQLITE) else OURS
    says = speed if yardstick.name in MORE_IS_BETTER or (aim is not None and aim.at_least) else cost
    unlike = "the yardstick is SQLite alone, without PostgreSQL"
    note = unlike if figure != "cached_get" and yardstick.name in (raw.SQLITE, langgraph.SQLITE_SAVER) else ""
    name = "get" if figure == "cached_get" and yardstick.name == BARE else ""
    row = says(taken, group, figure, yardstick.name, aim, ours=ours, note=note)
    row.yardstick = f"{yardstick.name}, {name}" if name else yardstick.name
    return row
