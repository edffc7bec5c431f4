"""The private way to the caller: answers in order, held back only while more requests wait (contract, section 1)."""

from __future__ import annotations

import os
import threading

HOLD_BYTES = 256 * 1024
HOLD_SECONDS = 0.02


class ReaderGone(Exception):
    """Nobody reads the answers any more."""


class Output:
    """Collects answer lines and writes them to a file descriptor.

    An answer is never held longer than 20 ms or beyond 256 KiB of answers, whatever the serving thread does meanwhile.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._held: list[bytes] = []
        self._held_bytes = 0
        self._lock = threading.Lock()
        self._holding = threading.Event()
        self._flusher: threading.Thread | None = None
        self.gone = False
        self.writing = False

    def put(self, line: bytes, *, more_follow: bool) -> None:
        """Hands over one answer. Without more to follow at once, everything held is written before this returns."""
        with self._lock:
            self._held.append(line)
            self._held_bytes += len(line)
            if not more_follow or self._held_bytes >= HOLD_BYTES:
                self._write()
                return
        if not self._holding.is_set():
            self._holding.set()
            if self._flusher is None:
                self._flusher = threading.Thread(target=self._flush_late, name="checkpoint-output", daemon=True)
                self._flusher.start()

    def flush(self) -> None:
        """Writes everything held."""
        with self._lock:
            self._write()

    def _write(self) -> None:
        if self._flusher is not None:
            self._holding.clear()
        if not self._held:
            return
        data = self._held[0] if len(self._held) == 1 else b"".join(self._held)
        self._held.clear()
        self._held_bytes = 0
        if self.gone:
            raise ReaderGone
        self.writing = True
        try:
            written = os.write(self._fd, data)
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError:  # EPIPE, or a descriptor that was never open
            self.gone = True
            raise ReaderGone from None
        finally:
            self.writing = False

    def _flush_late(self) -> None:
        while True:
            self._holding.wait()
            threading.Event().wait(HOLD_SECONDS)
            try:
                self.flush()
            except ReaderGone:
                return
