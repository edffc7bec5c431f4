"""Which action each request line asked for, so that its answer can be held to the right schema."""

from __future__ import annotations

import json
from collections import deque

LONGEST_KEPT = 16 * 1024 * 1024
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Asked:
    """Takes the bytes sent to a worker and gives, in order, the action of each non-blank line; None where it has none.

    A line longer than `LONGEST_KEPT` is not held; it counts as one without an action.
    """

    def __init__(self) -> None:
        self._actions: deque[str | None] = deque()
        self._line = bytearray()
        self._first = True
        self._dropped = False
        self._answered = False

    def feed(self, data: bytes) -> None:
        """Bytes as they went to the worker, cut anywhere."""
        *ended, rest = data.split(b"\n")
        for part in ended:
            self._add(part)
            self.end()
        self._add(rest)

    def end(self) -> None:
        """The line under way is complete: a line break came, or the end of the input."""
        line = bytes(self._line).removeprefix(BYTE_ORDER_MARK if self._first else b"")
        if not self._answered and (self._dropped or line.strip(b" \t\r")):
            self._actions.append(None if self._dropped else _action(line))
        self._line.clear()
        self._first = self._dropped = self._answered = False

    def next(self) -> str | None:
        """The action of the oldest line without an answer. A line still under way may be answered: it was too long."""
        if self._actions:
            return self._actions.popleft()
        assert self._line or self._dropped, "an answer came to which there is no request"
        self._line.clear()
        self._dropped = self._answered = True
        return None

    def _add(self, part: bytes) -> None:
        if self._dropped or len(self._line) + len(part) > LONGEST_KEPT:
            self._line.clear()
            self._dropped = True
        else:
            self._line += part


def _action(line: bytes) -> str | None:
    try:
        request = json.loads(line, parse_int=len, parse_float=len)
    except (ValueError, RecursionError):
        return None
    action = request.get("action") if isinstance(request, dict) else None
    return action if isinstance(action, str) else None
