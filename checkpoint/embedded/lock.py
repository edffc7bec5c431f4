"""A lock between processes that no kill leaves behind."""

from __future__ import annotations

import os
import time

from checkpoint.embedded.error import EmbeddedError
from checkpoint.embedded.folder import open_private

FIRST_PAUSE, LONGEST_PAUSE = 0.002, 0.05


class Lock:
    """An advisory lock (flock) on a file; the kernel lets go of it when its last holder ends, however that comes about.

    A fork that runs on as Python does not share it: the copy of the child is closed.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this process holds the lock through this object."""
        return self._descriptor is not None

    @property
    def descriptor(self) -> int:
        """The open file, for a child process that is to share the lock."""
        if self._descriptor is None:
            raise RuntimeError("the lock is not held")
        return self._descriptor

    def take(self, *, shared: bool, deadline: float) -> None:
        """Waits for the lock until `deadline` (seconds of time.monotonic). Raises EmbeddedError when it has passed."""
        pause = FIRST_PAUSE
        while not self.try_take(shared=shared):
            if time.monotonic() >= deadline:
                raise EmbeddedError(f"another process has held {self._path} for too long; end it, then try again")
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def try_take(self, *, shared: bool = False) -> bool:
        """Takes the lock if nobody is in the way, and tells whether it did.

        One that is held already is changed to what is asked; when that cannot be, it is lost.
        """
        import fcntl

        descriptor = self._descriptor
        if descriptor is None:
            descriptor = open_private(self._path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self._forget()
            os.close(descriptor)
            return False
        except BaseException:
            self._forget()
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        _held.add(self)
        return True

    def drop(self) -> None:
        """Lets go, for every process that shares the lock. Does nothing when it is not held."""
        import fcntl

        descriptor = self._forget()
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def leave_to_child(self) -> None:
        """Closes this process's side only: the lock stays for as long as a child that was given it lives."""
        descriptor = self._forget()
        if descriptor is not None:
            os.close(descriptor)

    def _forget(self) -> int | None:
        descriptor, self._descriptor = self._descriptor, None
        _held.discard(self)
        return descriptor


_held: set[Lock] = set()


def _close_in_child() -> None:
    for lock in tuple(_held):
        lock.leave_to_child()


os.register_at_fork(after_in_child=_close_in_child)
