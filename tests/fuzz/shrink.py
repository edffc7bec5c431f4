"""The smallest input that still shows a finding."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from tests.fuzz.target import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.fuzz.target import Target

BUDGET = 60.0

Part = TypeVar("Part", bytes, list[bytes])


class Shrinker:
    """Tries smaller inputs on fresh processes, for a minute at most; what a process stored before stays."""

    def __init__(self, target: Target, kind: str) -> None:
        self._target = target
        self._kind = kind
        self._give_up_at = time.monotonic() + BUDGET

    def smallest(self, lines: Sequence[bytes]) -> list[bytes]:
        """The fewest lines, each as short as can be; `lines` themselves where the finding does not come again."""
        for line in lines:
            if self._shows([line]):
                return [self._reduced(line, lambda part: self._shows([part]))]
        return self._reduced(list(lines), self._shows) if self._shows(lines) else list(lines)

    def _shows(self, lines: Sequence[bytes]) -> bool:
        try:
            self._target.exchange(lines)
        except Finding as finding:
            return finding.kind == self._kind
        return False

    def _reduced(self, whole: Part, shows: Callable[[Part], bool]) -> Part:
        """Takes pieces away, large ones first, as long as the finding stays."""
        size = max(1, len(whole) // 2)
        while True:
            position = 0
            while position < len(whole):
                less = whole[:position] + whole[position + size :]
                if time.monotonic() > self._give_up_at:
                    return whole
                if less and shows(less):
                    whole = less
                else:
                    position += size
            if size == 1:
                return whole
            size //= 2
