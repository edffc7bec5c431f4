"""Authority against cache, key by key, in memory that does not grow with either (contract, section 3, verify)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from checkpoint.record import Digest

KINDS = ("cache_only", "pg_only", "data_mismatch")
SECOND_LOOK = 500
LASTING_SECONDS = 0.3
PAUSE_SECONDS = 0.05
PATIENCE_SECONDS = 1.0  # for all pauses of one comparison, however many differences there are

Key = tuple[str, str]
Pair = tuple["Digest | None", "Digest | None"]


class Difference(msgspec.Struct, frozen=True):
    """One key on which the two sides do not agree; `reason` only for a data_mismatch."""

    kind: str
    workflow_id: str
    step_id: str
    reason: str | None = None

    @property
    def key(self) -> Key:
        """The ids that name the checkpoint."""
        return self.workflow_id, self.step_id

    def item(self) -> dict[str, str]:
        """The entry of the answer's and the report's lists."""
        item = {"workflow_id": self.workflow_id, "step_id": self.step_id}
        return item if self.reason is None else item | {"reason": self.reason}


class Comparison:
    """Walks both sides in key order. A difference is looked at a second time, since saves may be under way.

    `look_again` takes keys and returns what stands under them now, of the authority and of the cache.
    """

    def __init__(self, look_again: Callable[[list[Key]], tuple[dict[Key, Digest], dict[Key, Digest]]]) -> None:
        self._look_again = look_again
        self._patience = PATIENCE_SECONDS
        self.authority_count = 0
        self.cache_count = 0

    def differences(self, authority: Iterator[Digest], cache: Iterator[Digest]) -> Iterator[Difference]:
        """The differences that last, in key order."""
        suspects: dict[Key, Pair] = {}
        for pair in self._pairs(authority, cache):
            found = compare(*pair)
            if found is not None:
                suspects[found.key] = pair
                if len(suspects) == SECOND_LOOK:
                    yield from self._lasting(suspects)
                    suspects = {}
        yield from self._lasting(suspects)

    def _lasting(self, suspects: dict[Key, Pair]) -> Iterator[Difference]:
        """Those that differ in the same way for a while: a save may have reached one side only so far."""
        since = dict.fromkeys(suspects, time.monotonic())
        lasting: dict[Key, Difference] = {}
        while suspects:
            authority, cache = self._look_again(list(suspects))
            now = time.monotonic()
            for key, before in list(suspects.items()):
                pair = authority.get(key), cache.get(key)
                difference = compare(*pair)
                if difference is None:
                    del suspects[key]
                elif pair != before:
                    suspects[key], since[key] = pair, now
                elif now - since[key] >= LASTING_SECONDS or self._patience <= 0:
                    lasting[key] = difference
                    del suspects[key]
            if suspects:
                time.sleep(PAUSE_SECONDS)
                self._patience -= PAUSE_SECONDS
        return iter([lasting[key] for key in sorted(lasting)])

    def _pairs(self, authority: Iterator[Digest], cache: Iterator[Digest]) -> Iterator[Pair]:
        stored, cached = next(authority, None), next(cache, None)
        while stored is not None or cached is not None:
            # Code points in Python, bytes in PostgreSQL's "C" and in SQLite: for UTF-8 that is one order.
            take_stored = stored is not None and (cached is None or stored.key <= cached.key)
            take_cached = cached is not None and (stored is None or cached.key <= stored.key)
            yield stored if take_stored else None, cached if take_cached else None
            if take_stored:
                self.authority_count += 1
                stored = next(authority, None)
            if take_cached:
                self.cache_count += 1
                cached = next(cache, None)


def compare(stored: Digest | None, cached: Digest | None) -> Difference | None:
    """How the two sides of one key differ, if they do."""
    if stored is None:
        return None if cached is None else Difference("cache_only", *cached.key)
    if cached is None:
        return Difference("pg_only", *stored.key)
    if (stored.tenant_id, stored.sha256) == (cached.tenant_id, cached.sha256):
        return None
    if cached.id is None:
        reason = "no_revision"
    elif (cached.id, cached.revision) == (stored.id, stored.revision):
        reason = "damaged"
    else:
        behind = (cached.id, cached.revision or 0) < (stored.id or 0, stored.revision or 0)
        reason = "behind" if behind else "ahead"
    return Difference("data_mismatch", *stored.key, reason)
