"""What no product on PostgreSQL can do without: one round trip for a read, and one fsync more for a write."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING

from benchmarks import raw
from benchmarks.figure import MICROSECONDS, Row, in_unit
from benchmarks.interleaved import interleaved

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.run import Run
    from benchmarks.servers import Server

OPERATIONS = 200


def rows(run: Run, server: Server) -> Iterator[Row]:
    """Both, beside nothing."""
    group = f"the limits, {server.about}"
    run.say(group)
    with ExitStack() as stack:
        psycopg = stack.enter_context(raw.raw_psycopg(server, "limits", []))
        contestants = [psycopg.round_trips(), stack.enter_context(raw.fsyncs(run.folder))]
        taken = interleaved(run, group, contestants, OPERATIONS, count())
    for each in contestants:
        seconds = taken.seconds[each.name]
        rounds = {each.name: [in_unit(value, MICROSECONDS) for value in seconds]}
        yield Row(group=group, figure=each.name, unit=MICROSECONDS, ours=taken.median(each.name) * 1e6, rounds=rounds)
