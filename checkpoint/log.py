"""JSON lines on stderr that never hold up an answer: a bounded queue that drops when full (contract, section 6)."""

from __future__ import annotations

import os
import time
from collections import deque

from checkpoint.background import Background
from checkpoint.settings import LOG_LEVELS

QUEUE_LINES = 1000
FLUSH_SECONDS = 0.5
STDERR = 2


class Log:
    """Writes events at or above a level. The machinery starts with the first one that is written."""

    def __init__(self, level: int) -> None:
        self._level = level
        self._lines: deque[str] = deque()
        self._writer = Background("checkpoint-log", self._write)

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
        give_up = time.monotonic() + FLUSH_SECONDS
        while self._lines and time.monotonic() < give_up:
            time.sleep(0.005)

    def _put(self, line: str) -> None:
        if len(self._lines) < QUEUE_LINES:
            self._lines.append(line)
        self._writer.call()

    def _write(self) -> None:
        while True:
            while self._lines:
                try:
                    # Not sys.stderr: its lock would hold up the end of the process.
                    os.write(STDERR, self._lines[0].encode() + b"\n")
                except OSError:
                    pass
                finally:
                    self._lines.popleft()
            self._writer.wait()
