"""A thread beside the calling one, started and woken in ways that Ctrl-C cannot break in two."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Background:
    """Runs `run`, which waits for calls with `wait`. The thread is made at the first call.

    An Event or a Condition is a lock taken and given back by Python code: a KeyboardInterrupt between two steps of it
    leaves the lock taken for ever.
    """

    def __init__(self, name: str, run: Callable[[], None]) -> None:
        self._name = name
        self._run = run
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def call(self) -> None:
        """Ends the wait that is under way, or else the next one."""
        if self._thread is None or not self._thread.is_alive():  # Ctrl-C may have come before it began
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:  # another thread has called it as well
                pass

    def wait(self) -> None:
        """Sleeps until it is called; for the thread itself."""
        self._lock.acquire()
