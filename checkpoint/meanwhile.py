"""Work that is done while something else is waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Meanwhile:
    """Done at the first call, and never again: whoever has to wait calls it, and so does whoever waited in vain."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._work: Callable[[], None] | None = work

    def __call__(self) -> None:
        """Does the work, if nobody has."""
        work, self._work = self._work, None
        if work is not None:
            work()
