"""JSON lines on stderr that never hold up an answer: a bounded queue that drops when full (contract, section 6)."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from checkpoint.settings import LOG_LEVELS

if TYPE_CHECKING:
    from queue import Queue

QUEUE_LINES = 1000
FLUSH_SECONDS = 0.5
STDERR = 2


class Log:
    """Writes events at or above a level. The machinery starts with the first one that is written."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._queue: Queue[str] | None = None

    def __call__(self, level: str, event: str, **fields: object) -> None:
        """Queues one event. Fields must hold neither secrets nor states."""
        if LOG_LEVELS[level] < self._level:
            return
        import json

        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "level": level, "event": event, **fields}
        self._put(json.dumps(line, default=str))

    def traceback(self, event: str) -> None:
        """Queues the exception being handled, with its traceback."""
        from traceback import format_exc

        self("ERROR", event, traceback=format_exc())

    def flush(self) -> None:
        """Gives what is queued a short while to be written."""
        if self._queue is not None:
            give_up = time.monotonic() + FLUSH_SECONDS
            while self._queue.unfinished_tasks and time.monotonic() < give_up:
                time.sleep(0.005)

    def _put(self, line: str) -> None:
        import queue
        import threading

        if self._queue is None:
            self._queue = queue.Queue(QUEUE_LINES)
            threading.Thread(target=self._write, args=(self._queue,), name="checkpoint-log", daemon=True).start()
        try:
            self._queue.put_nowait(line)
        except queue.Full:
            pass

    @staticmethod
    def _write(lines: Queue[str]) -> None:
        while True:
            line = lines.get()
            try:
                os.write(STDERR, line.encode() + b"\n")  # not sys.stderr: its lock would hold up the end of the process
            except OSError:
                pass
            finally:
                lines.task_done()
