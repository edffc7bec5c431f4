"""PostgreSQL's clock, as far as this side can know it: what it showed at least when a statement was sent.

A statement can be held up by a lock, or by the network, until after a newer save was acknowledged; no time that the
server takes of it tells that. So each write says when it was sent, in the server's own time, and does nothing to a row
that was saved after that (contract, section 3, save).
"""

from __future__ import annotations

import time

_DRIFT = 5000  # two clocks run apart by less than one part in this


class ServerClock:
    """Kept by the replies that tell the server's time. A reading is at least as old as its reply."""

    def __init__(self) -> None:
        self._reading = 0
        self._read_at = 0

    def tell(self, micros: int) -> None:
        """Takes a reading, in microseconds since the epoch, that has just arrived."""
        self._reading, self._read_at = micros, time.monotonic_ns()

    def earliest(self) -> int:
        """What the server's clock shows now, at least, in microseconds since the epoch."""
        elapsed = (time.monotonic_ns() - self._read_at) // 1000
        return self._reading + elapsed - elapsed // _DRIFT
