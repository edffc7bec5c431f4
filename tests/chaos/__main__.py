"""`python -m tests.chaos --seconds 60 [--seed N]`: a storm over several workers; exit status 0 if nothing was lost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.chaos.storm import Storm
from tests.support import program

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.table import Table


def work(folder: Path, seed: int, seconds: float) -> tuple[Iterable[object], Table]:
    """What is known of each promise that was broken, and the table."""
    storm = Storm(folder, seed, seconds)
    table = storm.run()
    return storm.journal, table


if __name__ == "__main__":
    sys.exit(program.run("chaos", __doc__, 60, work))
