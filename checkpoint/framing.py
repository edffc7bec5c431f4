"""Bytes into lines, with a limit that holds however long a line is (contract, section 1)."""

from __future__ import annotations

from collections import deque

BOM = b"\xef\xbb\xbf"
_JSON_WHITE = b" \t\r"


class LineSplitter:
    """Cuts a stream at line feeds and nowhere else.

    `lines` holds what is complete, in order: the line without its line end, or None for a line over `limit` bytes,
    which is reported as soon as it crosses the limit and then dropped without being held. Blank lines are skipped.
    """

    def __init__(self, limit: int) -> None:
        self.lines: deque[bytes | None] = deque()
        self._limit = limit
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._dropping = False
        self._at_start = True

    def feed(self, chunk: bytes) -> None:
        """Takes the next bytes of the stream."""
        first, *rest = chunk.split(b"\n")
        self._extend(first)
        for piece in rest:
            self._end_line()
            self._extend(piece)

    def end(self) -> None:
        """The stream is over: what stands without a line end is a line like any other."""
        if self._tail:
            self._end_line()

    def _extend(self, piece: bytes) -> None:
        if not piece or self._dropping:
            return
        self._tail.append(piece)
        self._tail_size += len(piece)
        if self._tail_size > self._limit:
            self.lines.append(None)
            self._tail.clear()
            self._tail_size = 0
            self._dropping = True
            self._at_start = False

    def _end_line(self) -> None:
        if self._dropping:
            self._dropping = False
            return
        line = self._tail[0] if len(self._tail) == 1 else b"".join(self._tail)
        self._tail.clear()
        self._tail_size = 0
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(BOM)
        if line.strip(_JSON_WHITE):
            self.lines.append(line)
