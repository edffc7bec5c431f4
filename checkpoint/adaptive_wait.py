"""Waiting awake for what usually comes soon: to fall asleep and be woken costs more than a round trip to PostgreSQL."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_yield: Callable[[], None] | None = getattr(os, "sched_yield", None)  # not every system has it


class AdaptiveWait:
    """Looks again and again for at most `seconds`, then sleeps; sleeps at once where the last wait was longer.

    Between two looks it gives way, to threads and to other processes: it uses only what nobody else wants of the
    processor, and that only for waits that are short.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._short = False

    def until(self, is_there: Callable[[], object], take: Callable[[], T]) -> T:
        """What `take` returns, which sleeps where what it takes is not there yet; it may be there by then."""
        started = time.perf_counter()
        awake = self._short and self._looks(is_there, started + self._seconds)
        taken = take()
        if not awake:
            self._short = time.perf_counter() - started < self._seconds
        return taken

    def _looks(self, is_there: Callable[[], object], give_up: float) -> bool:
        while not is_there():
            if _yield is None:
                return False
            _yield()
            if time.perf_counter() >= give_up:
                return False
        return True
