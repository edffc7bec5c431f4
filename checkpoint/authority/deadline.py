"""Deadlines kept by the client, because the server cannot keep them all (contract, section 4, the last rule).

`statement_timeout` does not end a wait for a synchronous standby, and nothing on the server or in the kernel ends a
wait for a server that is frozen. When a deadline passes, the statement is cancelled; when that does not help, the
socket is shut down, and the statement fails as on any broken connection.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import psycopg

from checkpoint.background import Background

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from psycopg import Connection

GRACE_SECONDS = 0.2  # the server's own timeout, equal to ours, may come first
CANCEL_SECONDS = 0.2  # for the cancel to be delivered and to work
_POLL_SECONDS = 0.05
_IDLE_POLLS = 20


class Watchdog:
    """Watches one statement at a time, from a thread of its own that sleeps while there is none."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: tuple[Connection[Any], float] | None = None
        self._background = Background("checkpoint-deadline", self._run)
        self._parked = True  # as long as the thread is not made, too
        self.fired = False

    def guard(self, connection: Connection[Any], seconds: float) -> Self:
        """Bounds what is done with `connection` inside the `with` to `seconds` and a little; `fired` tells of a cut.

        Nothing is made for it: it stands around every statement.
        """
        self.fired = False
        self._watched = (connection, time.monotonic() + seconds + GRACE_SECONDS)
        if self._parked:
            self._background.call()
        return self

    def pause(self, work: Callable[[], object]) -> None:
        """Does something else than waiting for the server: what time it takes is not the server's."""
        watched, self._watched = self._watched, None
        started = time.monotonic()
        try:
            work()
        finally:
            if watched is not None:
                self._watched = (watched[0], watched[1] + time.monotonic() - started)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._watched = None

    def _run(self) -> None:
        self._parked = False
        idle = 0
        while True:
            watched = self._watched
            if watched is None:
                idle += 1
                if idle > _IDLE_POLLS:
                    self._park()
                    idle = 0
            else:
                idle = 0
                if time.monotonic() >= watched[1]:
                    self._cut(watched)
            time.sleep(_POLL_SECONDS)

    def _park(self) -> None:
        self._parked = True
        if self._watched is None:
            self._background.wait()
        self._parked = False

    def _cut(self, watched: tuple[Connection[Any], float]) -> None:
        connection = watched[0]
        with self._lock:
            if self._watched is not watched:
                return
            self.fired = True
            try:
                descriptor = os.dup(connection.fileno())
            except (OSError, psycopg.Error):
                return
        with contextlib.closing(socket.socket(fileno=descriptor)) as wire:
            give_up = time.monotonic() + CANCEL_SECONDS
            with contextlib.suppress(psycopg.Error, OSError):
                connection.cancel_safe(timeout=CANCEL_SECONDS)
            while self._watched is watched and time.monotonic() < give_up:
                time.sleep(0.01)
            with self._lock, contextlib.suppress(OSError):
                if self._watched is watched:
                    wire.shutdown(socket.SHUT_RDWR)
                    self._watched = None
