"""Contestants by turns: whatever else the machine does meanwhile falls on all of them alike."""

from __future__ import annotations

import gc
import time
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from random import Random

    from benchmarks.run import Run

BLOCK = 20
PATIENCE = 2.5  # seconds for one round of one figure; a slow machine does fewer operations, not longer rounds


class Contestant(msgspec.Struct, frozen=True):
    """Something that does an operation in its own way.

    `make` prepares, untimed, what the timed `do` takes. `cpu` tells the processor time used so far by the one who does
    the work, in seconds. `operations` is how many operations one `do` stands for.
    """

    name: str
    make: Callable[[int], Any]
    do: Callable[[Any], object]
    cpu: Callable[[], float] = time.thread_time
    operations: int = 1


class Taken(msgspec.Struct, frozen=True):
    """Per contestant, the median seconds of an operation in each round, and its processor seconds (mean)."""

    seconds: dict[str, list[float]]
    cpu: dict[str, list[float]]

    def median(self, name: str) -> float:
        """The median of the rounds."""
        return median(self.seconds[name])

    def used(self, name: str) -> float:
        """The same of the processor time."""
        return median(self.cpu[name])


def interleaved(
    run: Run, purpose: str, contestants: Sequence[Contestant], count: int, numbers: Iterator[int], block: int = BLOCK
) -> Taken:
    """Each contestant does about `count` operations a round, in blocks by turns whose order is drawn.

    Every contestant gets the same of `numbers`. The first block of all is not counted.
    """
    random = run.random(purpose)
    block = run.times(block)
    _blocks(random, contestants, [[next(numbers) for _ in range(block)]])
    taken = Taken({each.name: [] for each in contestants}, {each.name: [] for each in contestants})
    for _ in range(run.rounds):
        wanted = range(max(1, run.times(count) // block))
        seconds, cpu = _blocks(random, contestants, ([next(numbers) for _ in range(block)] for _ in wanted))
        for each in contestants:
            taken.seconds[each.name].append(median(seconds[each.name]))
            taken.cpu[each.name].append(cpu[each.name] / len(seconds[each.name]))
    return taken


def _blocks(
    random: Random, contestants: Sequence[Contestant], blocks: Iterator[list[int]] | Sequence[list[int]]
) -> tuple[dict[str, list[float]], dict[str, float]]:
    seconds: dict[str, list[float]] = {each.name: [] for each in contestants}
    cpu = dict.fromkeys(seconds, 0.0)
    gc.collect()
    gc.disable()
    give_up = time.monotonic() + PATIENCE
    try:
        for numbers in blocks:
            for each in random.sample(contestants, len(contestants)):
                prepared = [each.make(number) for number in numbers]
                before = each.cpu()
                seconds[each.name] += [_timed(each, argument) for argument in prepared]
                cpu[each.name] += (each.cpu() - before) / each.operations
            if time.monotonic() > give_up:
                break
    finally:
        gc.enable()
    return seconds, cpu


def _timed(contestant: Contestant, argument: object) -> float:
    do = contestant.do
    started = time.perf_counter()
    do(argument)
    return (time.perf_counter() - started) / contestant.operations
