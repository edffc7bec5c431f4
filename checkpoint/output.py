"""The private way to the caller: answers in order, held back only while more requests wait (contract, section 1)."""

from __future__ import annotations

import os
import select
import threading
import time

from checkpoint.background import Background

HOLD_BYTES = 256 * 1024
HOLD_SECONDS = 0.02
WRITE_BYTES = 256 * 1024  # of one write, unless a signal cuts it short: how far a slow reader has come is known then
LATE_WRITE_BYTES = 16 * 1024  # the same in a thread that no signal reaches
PIECE_BYTES = select.PIPE_BUF  # what a pipe that can be written to takes without a wait


class ReaderGone(Exception):
    """Nobody reads the answers any more."""


class Output:
    """Collects answer lines and writes them to a file descriptor.

    An answer is never held longer than 20 ms or beyond 256 KiB of answers, whatever the serving thread does meanwhile,
    unless the caller does not take them.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._lock = threading.Lock()  # of what is held; never kept over a write
        self._write_lock = threading.Lock()
        self._holding = False
        self._late = Background("checkpoint-output", self._flush_late)
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)
        self.gone = False
        self._waiting_since: float | None = None

    @property
    def stuck_seconds(self) -> float:
        """For how long the reader has taken nothing of what is being written; 0 where nothing is."""
        since = self._waiting_since
        return 0.0 if since is None else time.monotonic() - since

    def put(self, lines: bytes, *, more_follow: bool) -> None:
        """Hands over answers. Without more to follow at once, everything held is written before this returns."""
        full = self._hold(lines)
        if full or not more_follow:
            self.flush()
        else:
            self._flush_soon()

    def put_without_waiting(self, lines: bytes) -> None:
        """The same while something else must not wait: what the caller does not take at once is held for later."""
        if not self._hold(lines) or not self._write_lock.acquire(blocking=False):
            self._flush_soon()
            return
        try:
            rest = memoryview(self._take())
            while rest and self._poll.poll(0):
                rest = rest[self._write(rest[:PIECE_BYTES]) :]
            if rest:
                with self._lock:
                    self._held.insert(0, bytes(rest))
                    self._held_bytes += len(rest)
                self._flush_soon()
        finally:
            self._write_lock.release()

    def make_room(self) -> None:
        """Waits until the caller has taken what is held, if that is more than may be held. Raises ReaderGone."""
        if self.gone:
            raise ReaderGone
        if self._held_bytes >= HOLD_BYTES:
            self.flush()

    def flush(self) -> None:
        """Writes everything held."""
        self._flush(WRITE_BYTES)

    def _flush(self, most: int) -> None:
        with self._write_lock:
            rest = memoryview(self._take())
            while rest:
                rest = rest[self._write(rest[:most]) :]

    def _hold(self, lines: bytes) -> bool:
        with self._lock:
            self._held.append(lines)
            self._held_bytes += len(lines)
            return self._held_bytes >= HOLD_BYTES

    def _take(self) -> bytes:
        with self._lock:
            data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
            self._held.clear()
            self._held_bytes = 0
            return data

    def _write(self, data: memoryview) -> int:
        if self.gone:
            raise ReaderGone
        self._waiting_since = time.monotonic()
        try:
            return os.write(self._fd, data)
        except BlockingIOError:  # the caller has made it so
            self._poll.poll()
            return 0
        except OSError:  # EPIPE, or a descriptor that was never open
            self.gone = True
            raise ReaderGone from None
        finally:
            self._waiting_since = None

    def _flush_soon(self) -> None:
        if not self._holding:
            self._holding = True
            self._late.call()

    def _flush_late(self) -> None:
        while True:
            self._late.wait()
            time.sleep(HOLD_SECONDS)
            self._holding = False
            try:
                self._flush(LATE_WRITE_BYTES)
            except ReaderGone:
                return
