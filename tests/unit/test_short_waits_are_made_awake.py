"""A wait like the last short one is made awake, any other asleep; nothing is waited for longer than it takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from checkpoint import adaptive_wait
from checkpoint.adaptive_wait import AdaptiveWait

if TYPE_CHECKING:
    from collections.abc import Callable

LIMIT = 0.02


class Watched:
    """What is waited for; it tells how often it was looked for, and whether somebody slept for it."""

    def __init__(self, comes_at_look: int | None = None, asleep: float = 0.0) -> None:
        self.looks = 0
        self._comes_at_look = comes_at_look
        self._asleep = asleep

    def is_there(self) -> bool:
        """One look."""
        self.looks += 1
        return self.looks == self._comes_at_look

    def take(self) -> str:
        """Takes it, at once or after a sleep."""
        time.sleep(self._asleep)
        return "taken"


@pytest.fixture
def wait() -> AdaptiveWait:
    """One that has had a short wait."""
    fresh = AdaptiveWait(LIMIT)
    first = Watched(comes_at_look=1)
    assert fresh.until(first.is_there, first.take) == "taken"
    assert first.looks == 0, "the first wait is made asleep"
    return fresh


def test_after_a_short_wait_the_next_is_made_awake(wait: AdaptiveWait) -> None:
    """It looks until the thing is there, then takes it; and so again."""
    for _ in range(2):
        thing = Watched(comes_at_look=5)
        assert wait.until(thing.is_there, thing.take) == "taken"
        assert thing.looks == 5


def test_after_a_long_wait_the_next_is_made_asleep(wait: AdaptiveWait) -> None:
    """It does not look, and looks again once a wait was short."""
    late = Watched(asleep=2 * LIMIT)
    started = time.perf_counter()
    wait.until(late.is_there, late.take)
    assert late.looks > 0
    assert time.perf_counter() - started >= LIMIT, "it looked for as long as it may"
    after = Watched(comes_at_look=1)
    wait.until(after.is_there, after.take)
    assert after.looks == 0
    again = Watched(comes_at_look=1)
    wait.until(again.is_there, again.take)
    assert again.looks == 1


def test_what_fails_fails_as_without_it(wait: AdaptiveWait) -> None:
    """What the taking raises passes through, and the next wait is as good as before."""

    def fail() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        wait.until(lambda: True, fail)
    after = Watched(comes_at_look=2)
    assert wait.until(after.is_there, after.take) == "taken"
    assert after.looks == 2


def test_it_gives_way_between_two_looks(wait: AdaptiveWait, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each look that was in vain; where the system has no way to give way, it sleeps."""
    ways: list[Callable[[], None] | None] = [None]
    given: list[None] = []
    ways.append(lambda: given.append(None))
    monkeypatch.setattr(adaptive_wait, "_yield", ways[1])
    thing = Watched(comes_at_look=4)
    wait.until(thing.is_there, thing.take)
    assert len(given) == 3
    monkeypatch.setattr(adaptive_wait, "_yield", ways[0])
    thing = Watched(comes_at_look=4)
    assert wait.until(thing.is_there, thing.take) == "taken"
    assert thing.looks == 1
