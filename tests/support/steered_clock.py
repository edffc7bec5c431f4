"""A clock that the test sets: the runner's now_ms is what a file says. Run as a program, this is such a runner."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

HANDS = "STEERED_CLOCK"
ARGV = (sys.executable, str(Path(__file__).resolve()))


class SteeredClock:
    """The test's hand on it. Starts at the real time and then stands still."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.env = {HANDS: str(file)}
        self.now_ms = 0
        self.move(time.time_ns() // 1_000_000)

    def move(self, milliseconds: int) -> None:
        """Moves it on, or back."""
        self.now_ms += milliseconds
        new = self._file.with_suffix(".new")
        new.write_text(str(self.now_ms), encoding="ascii")
        new.rename(self._file)


def run() -> int:
    """The runner, on this clock."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from checkpoint import clock
    from checkpoint.worker import main

    file = Path(os.environ[HANDS])
    clock.now_ms = lambda: int(file.read_text(encoding="ascii"))
    return main(sys.argv[1:], os.environ)


if __name__ == "__main__":
    sys.exit(run())
