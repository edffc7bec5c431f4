"""The cache as actions see it: what may be served, and how changes of the authority reach it (contract, section 3)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from checkpoint import clock
from checkpoint.cache.connection import CacheConnection
from checkpoint.cache.entry import Entry, entry_of, mark_of_end
from checkpoint.cache.failure import CacheError
from checkpoint.cache.files import CacheFiles
from checkpoint.cache.store import CacheStore
from checkpoint.cache.writer import Writer
from checkpoint.record import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from checkpoint.record import Digest, Life, Record
    from checkpoint.settings import Settings

DRAIN_SECONDS = 2.0
REBUILD_WAIT_MS = 5000
REMEMBERED_KEYS = 10_000


class Found(msgspec.Struct, frozen=True):
    """What may be served of a key: an entry, and whether it is fresh, or good only where stale is allowed."""

    entry: Entry
    fresh: bool


class Cache:
    """The local cache of one authority. `source` identifies that authority's address; '' stands for none.

    Nothing here raises but CacheError, only where the caller has to know, and OtherTenantsEntry.
    """

    def __init__(self, settings: Settings, source: str) -> None:
        self._ttl_ms = settings.cache_ttl * 1000
        self._wait_ms = settings.cache_wait_ms
        self._source = source
        self._store_id: str | None = None
        self._trusted_since = 0
        self._told: dict[tuple[str, str], tuple[int, int]] = {}  # (id, revision) that PostgreSQL told, the last ones
        self._asked_at: int | None = None
        self._last_asked_at = 0
        self._announcement: tuple[int, bool] | None = None  # of which question, and whether it was made
        files = CacheFiles(settings.cache_path)

        def connect(busy_ms: int) -> CacheConnection:
            return CacheConnection(files, settings.cache_max_bytes, busy_ms, self._distrust)

        self._store = CacheStore(connect(0), settings.cache_max_bytes)
        self._writer = Writer(self._store, connect, settings.cache_max_bytes, settings.cache_wait_ms)
        self._writer.overflowed = self._distrust
        self.path = settings.cache_path

    @property
    def write_failures(self) -> int:
        """How many attempts to write failed so far."""
        return self._writer.failures

    def know_store(self, store_id: str) -> None:
        """PostgreSQL was reached, and this is the store there; entries of another one are not served any more."""
        if self._store_id != store_id:
            self._store_id = store_id
            self._told.clear()
            try:
                self._store.know_store(self._source, store_id)
            except CacheError:
                pass  # other processes learn it when they connect

    @property
    def trust(self) -> tuple[str | None, int]:
        """What decides which entries are served; it changes when a contact with PostgreSQL or a loss tells more."""
        return self._store_id, self._trusted_since

    def find(self, workflow_id: str, step_id: str, tenant_id: str | None) -> Found | None:
        """What is known of a key for this tenant, or for a request that names none."""
        queued = self._writer.pending((workflow_id, step_id))
        if queued is not None:
            return Found(queued, fresh=False) if self._visible(queued, tenant_id, self._store_id) else None
        try:
            entry, store_id = self._store.find(workflow_id, step_id, self._source)
        except CacheError:
            return None
        return self._found(entry, store_id, tenant_id)

    def find_together(self, keys: Sequence[tuple[str, str, str | None]]) -> tuple[list[Found | None], set[int]]:
        """The same for several keys (workflow_id, step_id, tenant_id), in their order.

        And the places of those whose entries are too large to be held together; nothing is told of them.
        """
        queued = [self._writer.pending(key[:2]) is not None for key in keys]  # before the file is read
        try:
            entries, large, store_id = self._store.find_together([key[:2] for key in keys], self._source)
        except CacheError:
            entries, large, store_id = {}, set(), None
        return [
            self.find(*key) if queued[place] else self._found(entries.get(place), store_id, key[2])
            for place, key in enumerate(keys)
        ], large

    def announce(self, asked_at: int) -> None:
        """Does all that can be done of a `put` before PostgreSQL, which was asked at `asked_at` (ms), has answered."""
        if self._writer.is_overdue:
            return
        self._asked_at = asked_at
        try:
            self._store.announce()
            self._announcement = asked_at, True
        except CacheError:
            self._announcement = asked_at, False
        finally:
            self._asked_at = None

    def put(self, records: Sequence[Record], asked_at: int) -> bool:
        """Takes over what PostgreSQL was asked at `asked_at` (ms). True when it is in the file within the budget."""
        self._asked_at = asked_at
        self._last_asked_at = max(self._last_asked_at, asked_at)
        entries = [self._entry(record, asked_at) for record in records]
        self._remember(entries)
        announcement, self._announcement = self._announcement, None
        announced, failed = announcement == (asked_at, True), announcement == (asked_at, False)
        try:
            return self._writer.put(entries, announced=announced, at_once=not failed)
        finally:
            self._asked_at = None

    def end(self, lives: Sequence[Life]) -> bool:
        """Takes over that rows were deleted; older states of these lives do not come back."""
        entries = [mark_of_end(life, clock.now_ms(), self._source, self._store_id) for life in lives]
        self._remember(entries)
        return self._writer.put(entries)

    def put_lossy(self, record: Record) -> tuple[bool, int]:
        """Stores what PostgreSQL does not know: whether it was written, and when. Raises OtherTenantsEntry.

        A write that does not succeed within the budget does not happen later.
        """
        entry = self._entry(record, clock.now_ms())
        queued = self._writer.pending(entry.key)
        if queued is not None:
            if queued.tenant_id != record.tenant_id and queued.state_data is not None:
                raise OtherTenantsEntry
            return False, entry.cached_at
        self._asked_at = entry.cached_at
        try:
            if not self._store.put_lossy(entry, self._wait_ms):
                raise OtherTenantsEntry
        except CacheError:
            return False, entry.cached_at
        finally:
            self._asked_at = None
        self._told.pop(entry.key, None)
        return True, entry.cached_at

    def drop_left_over(self, workflow_id: str, step_id: str, tenant_id: str | None) -> None:
        """Removes the entry of a key that PostgreSQL does not have, if it is of the tenant named."""

        def is_left_over(entry: Entry) -> bool:
            return entry.key == (workflow_id, step_id) and self._visible(entry, tenant_id, self._store_id)

        self._writer.revoke(is_left_over, (workflow_id, step_id))
        try:
            entry, _ = self._store.find(workflow_id, step_id, self._source)
            if entry is not None and is_left_over(entry):
                self._store.drop_seen(entry)
        except CacheError:
            self._distrust()

    def drop(self, tenant_id: str | None, workflow_id: str | None, step_id: str | None) -> None:
        """Removes what is cached of a scope, because what stands in PostgreSQL is not known."""
        self._writer.revoke(
            lambda entry: (
                tenant_id in (None, entry.tenant_id)
                and workflow_id in (None, entry.workflow_id)
                and step_id in (None, entry.step_id)
            )
        )
        try:
            self._store.drop_scope(tenant_id, workflow_id, step_id, self._wait_ms)
        except CacheError:
            self._distrust()

    def forget_call(self) -> None:
        """A call was broken off anywhere: what it changed in PostgreSQL may not have come here, nor ever will."""
        self._asked_at = self._announcement = None
        self._writer.revoke(lambda _entry: True)
        time.sleep(0.001)  # what was asked before it has an earlier time then
        self._distrust()
        self._trusted_since = max(self._trusted_since, self._last_asked_at + 1)  # also where the clock went back

    def begin_rebuild(self) -> int:
        """The mark that tells what stood before from what is written while the rebuild reads. Raises CacheError."""
        self._writer.drain(self._wait_ms / 1000)
        try:
            return self._store.begin_epoch(REBUILD_WAIT_MS)
        except CacheError as error:
            if not error.damaged:
                raise
            return self._store.begin_epoch(REBUILD_WAIT_MS)

    def rebuild(
        self, tenant_id: str, workflow_id: str | None, mark: int, records: Iterator[Record]
    ) -> tuple[int, int, bool]:
        """Puts `records` in the place of what stood before `mark`, in one transaction. Raises CacheError.

        Returns how many entries were there, how many are there now, and whether room ran out.
        """
        now = clock.now_ms()
        entries = (self._entry(record, now) for record in records)
        return self._store.replace(tenant_id, workflow_id, mark, entries, REBUILD_WAIT_MS)

    def digests(self, workflow_id: str | None, tenant_id: str | None) -> Iterator[Digest]:
        """Digests of a scope's entries in key order, expired ones too. Raises CacheError."""
        self._writer.drain(self._wait_ms / 1000)
        return self._store.digests(workflow_id, tenant_id, self._of_this_authority)

    def digests_of(self, keys: Iterable[tuple[str, str]], tenant_id: str | None) -> dict[tuple[str, str], Digest]:
        """Digests of the entries under `keys`, as they stand now. Raises CacheError."""
        self._writer.drain(self._wait_ms / 1000)
        return {
            digest.key: digest
            for key in keys
            for digest in self._store.digest_of(*key, self._of_this_authority)
            if tenant_id in (None, digest.tenant_id)
        }

    def health(self, tenant_id: str | None) -> tuple[int, int, str]:
        """Entries, of one tenant or of all, bytes and journal mode of the file. Raises CacheError."""
        return (self._store.count(tenant_id), *self._store.size_and_mode())

    def close(self) -> bool:
        """Drains what is queued, 2 s at most. False when something was left."""
        drained = self._writer.drain(DRAIN_SECONDS)
        self._store.connection.close()
        return drained

    def _entry(self, record: Record, cached_at: int) -> Entry:
        return entry_of(record, cached_at, self._source, self._store_id)

    def _found(self, entry: Entry | None, store_id: str | None, tenant_id: str | None) -> Found | None:
        if entry is None or not self._visible(entry, tenant_id, self._store_id or store_id):
            return None
        if entry.cached_at < self._trusted_since or self._is_behind(entry):
            return None
        age = clock.now_ms() - entry.cached_at  # below 0 where the clock went back
        return Found(entry, fresh=self._ttl_ms > 0 and 0 <= age <= self._ttl_ms)

    def _remember(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._told.pop(entry.key, None)
            self._told[entry.key] = (entry.id or 0, entry.revision or 0)
        while len(self._told) > REMEMBERED_KEYS:
            del self._told[next(iter(self._told))]

    def _is_behind(self, entry: Entry) -> bool:
        """Whether PostgreSQL told this process of a later state: then others put an older one back into the file."""
        told = self._told.get(entry.key)
        return told is not None and (entry.id is None or (entry.id, entry.revision or 0) < told)

    def _visible(self, entry: Entry, tenant_id: str | None, store_id: str | None) -> bool:
        if entry.state_data is None or not self._same_authority(entry, store_id):
            return False
        if tenant_id is not None:
            return entry.tenant_id == tenant_id
        return entry.id is not None or entry.tenant_id == DEFAULT_TENANT

    def _same_authority(self, entry: Entry, store_id: str | None) -> bool:
        if self._source == "" or entry.source == "":
            return True
        return entry.source == self._source and (store_id is None or entry.store_id in (None, store_id))

    def _of_this_authority(self, entry: Entry) -> bool:
        return self._same_authority(entry, self._store_id)

    def _distrust(self) -> None:
        """From now on only what PostgreSQL is asked after this moment is served, not even where stale is good enough.

        While an answer is put into the cache, the moment is that of its question: whatever was asked later knows of all
        that this process had been told before.
        """
        moment = clock.now_ms() if self._asked_at is None else self._asked_at
        self._trusted_since = max(self._trusted_since, moment)


class OtherTenantsEntry(Exception):
    """The key holds an entry of another tenant."""
