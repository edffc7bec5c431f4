"""Cache writes: at once where nothing stands in the way, else by a thread in the background (contract, section 3).

What is queued counts as the newest: such a key is not served from the file until its change is there.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from checkpoint.background import Background
from checkpoint.cache.failure import CacheError
from checkpoint.cache.store import CacheStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from checkpoint.cache.connection import CacheConnection
    from checkpoint.cache.entry import Entry

HELD_BYTES = 32 * 1024 * 1024
HELD_KEYS = 100_000
AT_ONCE_BYTES = 2 * 1024 * 1024
BYTES_BESIDE_STATE = 1000
BUSY_MS = 100
FIRST_PAUSE = 0.02
LAST_PAUSE = 0.5
LOOK_SECONDS = 0.001


class Writer:
    """Applies entries to the file in order, and tries those again that failed, while the process lives.

    `front` is the store of the serving thread; the background thread has a connection of its own.
    """

    def __init__(
        self, front: CacheStore, connect: Callable[[int], CacheConnection], max_bytes: int, wait_ms: int
    ) -> None:
        self._front = front
        self._connect = connect
        self._max_bytes = max_bytes
        self._wait = wait_ms / 1000
        self._at_once_bytes = min(AT_ONCE_BYTES, max_bytes // 4)
        self._pending: dict[tuple[str, str], Entry] = {}
        self._held_bytes = 0
        self._lock = threading.Lock()
        self._background = Background("checkpoint-cache", self._run)
        self._hopeless = False
        self._begun = self._ended = 0  # attempts of the background
        self.failures = 0
        self.overflowed: Callable[[], None] = lambda: None

    def put(self, entries: Sequence[Entry], *, announced: bool = False, at_once: bool = True) -> bool:
        """Hands entries over. True when they are in the file; waits for that no longer than the budget.

        Of one entry that was announced to the store as little as possible is left to do. What cannot be done `at_once`,
        as the announcement has shown, is left to the background.
        """
        if not entries:
            return True
        if announced and len(entries) == 1 and self._put_announced(entries[0]):
            return True
        return self._hand_over(entries, at_once=at_once) and all(map(self._front.takes, entries))

    @property
    def is_overdue(self) -> bool:
        """Whether earlier entries still wait."""
        return bool(self._pending)

    def pending(self, key: tuple[str, str]) -> Entry | None:
        """The change of a key that is not in the file yet."""
        return self._pending.get(key)

    def revoke(self, belongs: Callable[[Entry], bool], key: tuple[str, str] | None = None) -> None:
        """Leaves nothing to serve of queued changes, of one key or of all, because what they say may be wrong.

        They stay queued, without their states: the background thread may be writing them at this moment.
        """
        with self._lock:
            keys = list(self._pending) if key is None else {key} & self._pending.keys()
            for entry in [self._pending[each] for each in keys]:
                if belongs(entry):
                    self._hold(entry.without_state())

    def drain(self, seconds: float) -> bool:
        """Waits until everything is in the file, or it is plain that nothing will be, no longer than `seconds`."""
        if not self._pending:
            return True
        self._background.call()
        tried = self._begun  # what an attempt finds that begins from now on counts
        _wait_until(lambda: not self._pending or (self._hopeless and self._ended > tried), seconds)
        return not self._pending

    def _put_announced(self, entry: Entry) -> bool:
        if self._pending or entry.size > self._at_once_bytes or not self._front.takes(entry):
            return False
        try:
            self._front.put_announced(entry)
        except CacheError:
            return False  # the other way knows what to do, and counts
        return True

    def _hand_over(self, entries: Sequence[Entry], *, at_once: bool) -> bool:
        overdue = self.is_overdue
        if at_once and not overdue and len(self._first_of(entries)) == len(entries):
            try:
                self._front.put(entries)
            except CacheError:
                self.failures += 1
            else:
                return True
        with self._lock:
            whole = [self._hold(entry) for entry in entries]
        self._background.call()
        if overdue or not all(whole):
            return False
        return _wait_until(lambda: not any(entry.key in self._pending for entry in entries), self._wait)

    def _hold(self, entry: Entry) -> bool:
        """Queues an entry; whether there was room for its state."""
        self._release(entry.key)
        whole = self._held_bytes + entry.size <= HELD_BYTES
        if not whole:
            entry = entry.without_state()
        if len(self._pending) >= HELD_KEYS:
            self._pending.clear()
            self._held_bytes = 0
            self.overflowed()
        self._pending[entry.key] = entry
        self._held_bytes += entry.size
        return whole

    def _release(self, key: tuple[str, str]) -> None:
        entry = self._pending.pop(key, None)
        if entry is not None:
            self._held_bytes -= entry.size

    def _first_of(self, entries: Iterable[Entry]) -> list[Entry]:
        """As many as are written in one transaction, one at least: it has to fit into the file."""
        first: list[Entry] = []
        size = 0
        for entry in entries:
            size += entry.size + BYTES_BESIDE_STATE
            if first and size > self._at_once_bytes:
                break
            first.append(entry)
        return first

    def _run(self) -> None:
        store = CacheStore(self._connect(BUSY_MS), self._max_bytes)
        pause = FIRST_PAUSE
        while True:
            while not self._pending:
                self._background.wait()
            with self._lock:
                batch = self._first_of(self._pending.values())
            self._begun += 1
            try:
                store.put(batch)
            except CacheError as error:
                self.failures += 1
                self._hopeless, self._ended = error.lasts, self._begun
                time.sleep(pause)
                pause = min(2 * pause, LAST_PAUSE)
                continue
            pause = FIRST_PAUSE
            self._hopeless = False
            with self._lock:
                for entry in batch:
                    if self._pending.get(entry.key) is entry:
                        self._release(entry.key)


def _wait_until(is_so: Callable[[], bool], seconds: float) -> bool:
    """Whether it became so within that time. It looks again and again, so that Ctrl-C leaves no lock behind."""
    give_up = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() >= give_up:
            return False
        time.sleep(LOOK_SECONDS)
    return True
