"""Damage done to lines, byte by byte and piece by piece."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

MOST_LINES = 2000
# What a reader of JSON lines may stumble over.
PIECES = (
    *(b"\n", b"\r", b"\r\n", b"\t", b" ", b"\0", b"\x7f", b"\x0b", b"\x85", b"\xa0"),
    *(b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xff", b"\xf0\x9f\x98"),
    *(b"{", b"}", b"[", b"]", b":", b",", b'"', b"\\", b"'", b"//", b"/*"),
    *(b"\\u0000", b"\\ud800", b"\\udc00", b"\\ud83d\\ude00", b"\\u", b'\\"', b"\\/", b"\\x41", b"\\n"),
    *(b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity", b"undefined", b"{}", b"[]", b'""'),
    *(b"0", b"-0", b"-0.0", b"00", b"1.", b".5", b"+1", b"1e400", b"1E-400", b"0x10", b"1_000", b"9" * 400),
    *(b"18446744073709551616", b"-9223372036854775809", b"9007199254740993", b"1.0", b"1e2", b"0.1e1"),
    *(
        b'"action":"save",',
        b'"\\u0061ction":"get",',
        b'"tenant_id":null,',
        b'"tenant_id":"",',
        b'"expected_revision":0,',
    ),
    *(b'"cursor":"",', b'"limit":1e4,', b'"all_steps":true,', b'"state_data":{},', b'"state_data":{"a":1,"a":2},'),
    *(b"[" * 300, b'{"a":' * 300, b"[" * 3000, b"]" * 300),
)

TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|true|false|null', re.DOTALL)
PLACEHOLDER = re.compile(rb'"<[a-z]+:[a-z_0-9]+>"')
NAME = re.compile(rb"[ \t\r]*:")
ACTION = (b'"action":', b'"action": ')
MOST_TOKENS = 3000


class Mutator:
    """Makes lines out of others. Everything follows from `random`, and from what is told to it.

    `told` are the latest tokens and cursors of answers; they take the place of the placeholders of golden lines.
    """

    def __init__(self, corpus: Sequence[bytes], random: Random) -> None:
        self._corpus: list[bytes] = []
        self.told: list[bytes] = []
        self._tokens: list[bytes] = [b"{}", b"[]", b"[[]]", b'{"a":{}}', b"-0.0", b"1e400", b'"\\u0000"']
        self._random = random
        self._ways: tuple[Callable[[bytearray, int], None], ...] = (
            self._flip,
            self._delete,
            self._repeat,
            self._insert,
            self._insert,
            self._replace,
            self._splice,
            self._cut,
        )
        self.learn(corpus)

    def learn(self, lines: Sequence[bytes]) -> None:
        """Takes further lines to begin with; of many it keeps some."""
        for line in lines:
            self._keep(self._corpus, line, MOST_LINES)
            for token in TOKEN.findall(line)[:20]:
                self._keep(self._tokens, token, MOST_TOKENS)

    def line(self) -> bytes:
        """A line of the corpus, mostly with other values in it or with some damage; it may have become several."""
        line = bytearray(PLACEHOLDER.sub(self._filled, self._random.choice(self._corpus)))
        if self._random.random() < 0.7:
            for _ in range(self._random.choice((0, 1, 1, 2, 4))):
                self._exchange(line)
        else:
            for _ in range(self._random.choice((1, 1, 2, 8))):
                self._random.choice(self._ways)(line, self._random.randrange(len(line) + 1))
        return bytes(line)

    def long_line(self, length: int) -> bytes:
        """A line of that many bytes: a request with a large state, spaces or one string, sometimes damaged."""
        head, tail = b'{"action":"save","workflow_id":"long","step_id":"s","state_data":{"x":"', b'"}}'
        fill = self._random.choice((b"x", b"\\u0000", "é".encode(), b"\\\\", b'","y":"', b"\xff"))
        line = bytearray(head + fill * ((length - len(head) - len(tail)) // len(fill)) + tail)
        line += b" " * (length - len(line))
        if self._random.random() < 0.3:
            line[self._random.randrange(len(line))] = self._random.randrange(256)
        return bytes(line)

    def _filled(self, placeholder: re.Match[bytes]) -> bytes:
        return self._random.choice(self.told) if self.told else placeholder[0]

    def _keep(self, kept: list[bytes], new: bytes, most: int) -> None:
        if len(kept) < most:
            kept.append(new)
        else:
            kept[self._random.randrange(most)] = new

    def _exchange(self, line: bytearray) -> None:
        """Another value in the place of one: mostly it stays JSON."""
        found = list(TOKEN.finditer(line))
        values = [
            token
            for token in found
            if not NAME.match(line, token.end()) and not line.endswith(ACTION, 0, token.start())
        ]
        chosen = values if self._random.random() < 0.9 else found
        if chosen:
            token = self._random.choice(chosen)
            line[token.start() : token.end()] = self._random.choice(self._tokens)

    def _flip(self, line: bytearray, at: int) -> None:
        if at < len(line):
            line[at] ^= 1 << self._random.randrange(8)

    def _delete(self, line: bytearray, at: int) -> None:
        del line[at : at + self._length()]

    def _repeat(self, line: bytearray, at: int) -> None:
        line[at:at] = line[at : at + self._length()] * self._random.choice((1, 2, 50))

    def _insert(self, line: bytearray, at: int) -> None:
        line[at:at] = self._random.choice(PIECES)

    def _replace(self, line: bytearray, at: int) -> None:
        line[at : at + self._length()] = self._random.choice(PIECES)

    def _splice(self, line: bytearray, at: int) -> None:
        other = self._random.choice(self._corpus)
        line[at:] = other[self._random.randrange(len(other) + 1) :]

    def _cut(self, line: bytearray, at: int) -> None:
        del line[at:]

    def _length(self) -> int:
        return self._random.choice((1, 1, 2, 4, 16, 64))
