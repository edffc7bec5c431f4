"""A runner on a machine that slept: a program, started in the place of runner.py.

Its monotonic clock is behind by the nanoseconds that the file named by SLEPT_CLOCK holds, as after a suspension, during
which that clock stands still while the clocks of other machines go on.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

SLEPT = Path(os.environ["SLEPT_CLOCK"])
awake_ns = time.monotonic_ns


def monotonic_ns() -> int:
    """What a clock shows that stood still for so long."""
    return awake_ns() - int(SLEPT.read_text(encoding="ascii"))


time.monotonic_ns = monotonic_ns
time.monotonic = lambda: monotonic_ns() / 1e9

from checkpoint.worker import main  # noqa: E402 - the clock has to be replaced first

sys.exit(main(sys.argv[1:], os.environ))
