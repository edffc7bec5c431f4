"""One step out of a workflow of 4,000, by its key.

PostgreSQL plans LangGraph's statement badly while it has no statistics of the tables at all, and well once autovacuum
has been there; so both states are measured, and the aim is held to the second, which is the lasting one.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

from benchmarks import langgraph_savers as langgraph
from benchmarks.figure import at_least, speed
from benchmarks.interleaved import interleaved
from benchmarks.servers import analyze
from benchmarks.states import KB, States
from benchmarks.workers import OBJECTS, asked_with_objects, line, our_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.figure import Row
    from benchmarks.run import Run
    from benchmarks.servers import Server

STEPS = 4000
STATES = 16
OPERATIONS = 60
WORKFLOW = "long"


def rows(run: Run, server: Server) -> Iterator[Row]:
    """The `get` of a step beside LangGraph's `get_tuple` of a checkpoint, both by key; nothing without LangGraph."""
    if not langgraph.installed():
        return
    steps = run.times(STEPS, least=STATES)
    group = f"a workflow of {steps:,} steps, 1 KB, {server.about}"
    run.say(group)
    states = States(run.random("long"))
    values = [states.value(KB) for _ in range(STATES)]
    texts = [states.text(KB) for _ in range(STATES)]
    random = run.random("steps")
    with ExitStack() as stack:
        ours = stack.enter_context(our_worker(server, os.path.join(run.folder, "long-workflow")))
        saver = stack.enter_context(langgraph.postgres_saver(server, WORKFLOW, values))
        ours.flood(b"".join(line("save", WORKFLOW, number, texts[number % STATES]) for number in range(steps)), steps)
        saver.fill(range(steps))
        numbers = (random.randrange(steps) for _ in count())
        contestants = [asked_with_objects(ours, "get", WORKFLOW), saver.reads()]
        fresh = interleaved(run, f"{group} fresh", contestants, OPERATIONS, numbers)
        analyze(server)
        taken = interleaved(run, group, contestants, OPERATIONS, numbers)
        yield speed(taken, group, "get", langgraph.POSTGRES_SAVER, at_least(10), ours=OBJECTS)
        row = speed(fresh, group, "get, without statistics", langgraph.POSTGRES_SAVER, ours=OBJECTS)
        row.note = "before PostgreSQL has looked at the tables"
        yield row
