"""A way to wake a thread that Ctrl-C cannot break in two."""

from __future__ import annotations

import threading


class WakeUp:
    """For one thread that waits. A call that came before the wait ends the wait at once.

    An Event or a Condition is a lock taken and given back by Python code: a KeyboardInterrupt between two steps of it
    leaves the lock taken for ever.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def call(self) -> None:
        """Ends the wait that is under way, or else the next one."""
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:  # another thread has called it as well
                pass

    def wait(self) -> None:
        """Sleeps until it is called."""
        self._lock.acquire()
