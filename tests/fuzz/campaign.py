"""Rounds of generated and of damaged lines until the time is over, and the table of what came of them."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.approvals import Approvals
from tests.fuzz.corpus import golden_lines
from tests.fuzz.mutation import Mutator
from tests.fuzz.shrink import Shrinker
from tests.fuzz.strategies import BATCHES
from tests.fuzz.target import LIMIT, Finding
from tests.support.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.fuzz.target import Target

EXAMPLES = 5
DAMAGED_LINES = 120
# After how many batches of damaged lines.
GENERATED_EVERY = 5
LONG_EVERY = 30
NEW_PROCESS_EVERY = 120
MOST_FINDINGS = 10
QUIET = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


class Campaign:
    """Everything that is sent follows from `number`; how much of it is sent from the time."""

    def __init__(self, target: Target, number: int) -> None:
        self._target = target
        self._number = number
        self._random = Random(number)
        self._mutator = Mutator(golden_lines(), self._random)
        self._approvals = Approvals(self._random)
        self.findings: list[str] = []

    def run(self, seconds: float) -> Table:
        """The table; `findings` then tells each finding with the smallest input that shows it."""
        began = time.monotonic()
        batches = 0
        while time.monotonic() - began < seconds and len(self.findings) < MOST_FINDINGS:
            if batches % GENERATED_EVERY == 0:
                self._generated(self._random.getrandbits(32))
            if batches % LONG_EVERY == 0:
                self._send([self._long_line(), *(self._mutator.line() for _ in range(3)), self._long_line()])
            self._send([self._mutator.line() for _ in range(DAMAGED_LINES)])
            self._send([self._approvals.question()])
            if self._target.told:
                self._send(self._approvals.decisions(self._target.told[-1]))
            if batches % NEW_PROCESS_EVERY == 0:
                self._end(self._mutator.line())
            batches += 1
        if not self.findings:
            self._end(b'{"action":"healthcheck"}')
        self._target.kill()
        return self._table(time.monotonic() - began)

    def _generated(self, number: int) -> None:
        @seed(number)
        @QUIET
        @given(BATCHES)
        def batch(lines: list[bytes]) -> None:
            self._send(lines)
            self._mutator.learn(lines)

        batch()

    def _long_line(self) -> bytes:
        around_the_limit = self._random.randrange(-3, 4)
        return self._mutator.long_line(LIMIT + self._random.choice((around_the_limit, -400_000, 300_000)))

    def _send(self, lines: Sequence[bytes]) -> None:
        size = sum(len(line) + 1 for line in lines)
        cuts = [self._random.randrange(size) for _ in range(self._random.choice((0, 0, 1, 3, 10)))]
        try:
            self._target.exchange(lines, cuts)
        except Finding as finding:
            self._shrink(finding, lines)
        self._mutator.told = self._target.told

    def _end(self, last: bytes) -> None:
        try:
            self._target.end(last)
        except Finding as finding:
            self.findings.append(f"{finding}\n  the last line of the input was {last!r}")

    def _shrink(self, finding: Finding, lines: Sequence[bytes]) -> None:
        smallest = Shrinker(self._target, finding.kind).smallest(lines)
        shown = "\n".join(f"  {line!r}" for line in smallest)
        self.findings.append(f"{finding}\n  smallest input, {len(smallest)} of {len(lines)} lines:\n{shown}")

    def _table(self, seconds: float) -> Table:
        target = self._target
        table = Table(f"fuzz: seed {self._number}, {seconds:.0f} s")
        table.tell("worker processes", target.processes)
        table.tell("lines sent that want an answer", target.lines)
        for code, count in sorted(target.codes.items(), key=lambda item: -item[1]):
            table.tell(f"  answered with {code}", count)
        table.hold("findings", len(self.findings), 0)
        return table
