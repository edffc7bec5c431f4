"""`python -m benchmarks --rounds 5 [--seed N]`: takes the figures, prints the table, writes both to benchmarks/results.

BENCH_DATABASE_URL names a further PostgreSQL to take the figures on.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from benchmarks import (
    anatomy,
    cache_cost,
    chart,
    limits,
    long_workflow,
    memory,
    one_by_one,
    rebuilding,
    verifying,
    waiting,
)
from benchmarks.result import Result
from benchmarks.run import Run
from benchmarks.servers import Server, asked, place, servers
from benchmarks.start_up import StartUp

if TYPE_CHECKING:
    from benchmarks.figure import Row

RESULTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")
SMALL, LARGE = 1, 100


def take(run: Run, found: list[Server]) -> Result:
    """All figures. Those that are about one server come from the first; the aims at 100 KB are about one with lz4."""
    first = found[0]
    with_lz4 = next((server for server in found if server.lz4), None)
    start_up = StartUp(run, first)
    rows: list[Row] = []
    long = list(long_workflow.rows(run, first))  # before anything makes statistics of its tables
    for server in found:
        is_first = server is first
        rows += limits.rows(run, server)
        if is_first or server is not with_lz4:
            rows += one_by_one.rows(run, server, SMALL, with_aims=is_first)
            rows += waiting.rows(run, server, with_aims=is_first)
        rows += one_by_one.rows(run, server, LARGE, with_aims=server is with_lz4)
    rows += long
    rows += start_up.rows()
    rows += cache_cost.rows(run, first)
    rows += memory.rows(run, first)
    rows += rebuilding.rows(run, first)
    rows += verifying.rows(run, first)
    parts = anatomy.parts(run, first, SMALL) + anatomy.parts(run, with_lz4 or first, LARGE)
    return Result(run, found, rows, parts, start_up.imports())


def main() -> int:
    """The exit status is 0 when the figures were taken, whatever they are."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each figure, whose median counts (default: 5)")
    parser.add_argument("--seed", type=int, default=1, help="of states, keys and the order of turns (default: 1)")
    parser.add_argument("--scale", type=float, default=1.0, help="fewer operations and rows: no figures, only a trial")
    parser.add_argument("--only", metavar="URL", help="use this PostgreSQL and start none")
    parser.add_argument("--results", default=RESULTS, help="the folder to write into (default: %(default)s)")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(place())
        run = Run(arguments.rounds, arguments.seed, arguments.scale, folder)
        if arguments.only:
            found = [asked(arguments.only, "the one given")]
        else:
            found = stack.enter_context(servers(folder, os.environ.get("BENCH_DATABASE_URL")))
        result = take(run, found)
    result.write(arguments.results)
    missing = chart.write(result, arguments.results)
    sys.stdout.write(result.markdown())
    run.say(f"written to {arguments.results}")
    if missing:
        run.say(missing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
