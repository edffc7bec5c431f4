"""The JSON-lines door tells a terminal how far a long action is, and nobody else (contract, section 1)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from checkpoint import progress
from tests.support.process import bytes_in

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clock:
    """A clock that the test moves."""

    now = 1000.0

    def monotonic(self) -> float:
        """Seconds."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of progress."""
    steered = Clock()
    monkeypatch.setattr(progress, "time", steered)
    return steered


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal: what reads it, and what is written to."""
    ends = os.openpty()
    yield ends
    for end in ends:
        os.close(end)


def test_a_terminal_gets_a_line_a_second(clock: Clock, terminal: tuple[int, int]) -> None:
    """Nothing in the first second, nothing at the end, and each action begins anew."""
    reader, written = terminal
    tell = progress.on_terminal(written)
    assert tell is not None
    for action in ("rebuild", "verify"):
        for done, after in ((1000, 0.0), (2000, 0.9), (3000, 0.2), (4000, 0.2), (5000, 1.0)):
            clock.now += after
            tell(action, done, None)
        clock.now += 5
        tell(action, 5100, 5100)
        expected = f"{action}: 3000 rows so far\r\n{action}: 5000 rows so far\r\n"
        shown = b""
        while len(shown) < len(expected):  # a terminal may hand them over one by one
            shown += os.read(reader, 1000)
        assert shown.decode() == expected


def test_a_pipe_gets_nothing() -> None:
    """Where stderr is read by a program there is no progress at all."""
    reader, written = os.pipe()
    try:
        assert progress.on_terminal(written) is None
    finally:
        os.close(reader)
        os.close(written)


def test_a_stopped_terminal_is_not_waited_for(clock: Clock, terminal: tuple[int, int]) -> None:
    """Nobody takes what is written: the lines are dropped, and the action goes on."""
    _reader, written = terminal
    tell = progress.on_terminal(written)
    assert tell is not None
    tell("verify", 1000, None)
    for step in range(2000):
        clock.now += 1
        tell("verify", 2000 + step, None)
    assert bytes_in(_Descriptor(_reader)) < 2000 * len("verify: 2000 rows so far")


class _Descriptor:
    def __init__(self, number: int) -> None:
        self._number = number

    def fileno(self) -> int:
        return self._number
