"""One run: how many rounds, which random numbers, how much of everything, where its files lie."""

from __future__ import annotations

import sys
import time
from random import Random

import msgspec


class Run(msgspec.Struct, frozen=True):
    """What every figure is taken with.

    `scale` multiplies how often a thing is done and how many rows there are: 1 for figures, less to see whether they
    can be taken at all. `folder` is on a disk and goes when the run ends.
    """

    rounds: int
    seed: int
    scale: float
    folder: str
    started: float = msgspec.field(default_factory=time.monotonic)

    def random(self, purpose: str) -> Random:
        """A source of its own for each purpose, so that one figure left out does not change the others."""
        return Random(f"{self.seed} {purpose}")

    def times(self, count: int, least: int = 1) -> int:
        """`count`, scaled."""
        return max(least, round(count * self.scale))

    def say(self, what: str) -> None:
        """Tells on stderr what is being done."""
        sys.stderr.write(f"{time.monotonic() - self.started:6.1f} s  {what}\n")
        sys.stderr.flush()
