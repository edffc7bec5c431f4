"""Requests that wait: the pipe is filled from a thread while the answers are read. 1 KB a state."""

from __future__ import annotations

import os
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

import orjson

from benchmarks import langgraph_savers as langgraph
from benchmarks.figure import OURS, PER_SECOND, at_least, speed
from benchmarks.interleaved import Contestant, interleaved
from benchmarks.states import KB, States
from benchmarks.workers import BARE, bare_worker, flooded, line, our_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figure import Row
    from benchmarks.run import Run
    from benchmarks.servers import Server

WORKFLOW = "waiting"
STATES = 16
OURS_AT_ONCE, BARE_AT_ONCE = 4000, 300
FLOODS = 2
PUTS_IN_A_ROW = 50
AIMS = {("save", BARE): 7, ("get", BARE): 8, ("cached_get", BARE): 10, ("save", langgraph.POSTGRES_SAVER): 6}


def rows(run: Run, server: Server, *, with_aims: bool) -> Iterator[Row]:
    """The rates; `with_aims` where this server is the one that the aims are about."""
    group = f"waiting requests, 1 KB, {server.about}"
    run.say(group)
    states = States(run.random("waiting"))
    values = [states.value(KB) for _ in range(STATES)]
    texts = [orjson.dumps(value) for value in values]
    folder = os.path.join(run.folder, f"waiting-{server.version}")
    os.mkdir(folder)
    ours_at_once, bare_at_once = run.times(OURS_AT_ONCE, least=STATES), run.times(BARE_AT_ONCE, least=STATES)

    def lines(action: str, many: int) -> bytes:
        return b"".join(
            line(action, WORKFLOW, number, texts[number % STATES] if action == "save" else None)
            for number in range(many)
        )

    with ExitStack() as stack:
        ours = stack.enter_context(our_worker(server, os.path.join(folder, "data")))
        bare = stack.enter_context(bare_worker(server))
        savers = stack.enter_context(langgraph.savers(server, os.path.join(folder, "saver.db"), WORKFLOW, values))
        puts = [_in_a_row(each.saves()) for each in savers[:1]]
        for action in ("save", "get", "cached_get"):
            contestants = [
                flooded(ours, OURS, lines(action, ours_at_once), ours_at_once),
                flooded(bare, BARE, lines("save" if action == "save" else "get", bare_at_once), bare_at_once),
                *(puts if action == "save" else ()),
            ]
            taken = interleaved(run, f"{group} {action}", contestants, FLOODS, count(), block=1)
            for each in contestants[1:]:
                bound = AIMS.get((action, each.name)) if with_aims else None
                aim = None if bound is None else at_least(bound)
                row = speed(taken, group, action, each.name, aim, unit=PER_SECOND)
                if action == "cached_get":
                    row.yardstick += ", get"
                    row.note = "the aim is 40,000 a second where the bare worker's get does 4,000"
                if each.name == langgraph.POSTGRES_SAVER:
                    row.note = "put has no way to wait: one after the other"
                yield row


def _in_a_row(one: Contestant) -> Contestant:
    """Several operations as one, as long as a flood."""
    numbers = count()

    def do(prepared: list[object]) -> None:
        for each in prepared:
            one.do(each)

    def make(_: int) -> list[object]:
        return [one.make(next(numbers)) for _ in range(PUTS_IN_A_ROW)]

    return Contestant(one.name, make, do, one.cpu, PUTS_IN_A_ROW)
