"""The statements on the cache file: entries in, entries out, each checked against its checksum when it is read."""

from __future__ import annotations

import time
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from checkpoint.cache.connection import STATEMENTS
from checkpoint.cache.entry import Entry
from checkpoint.cache.failure import CacheError, Damage, is_full

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

    from checkpoint.cache.connection import CacheConnection
    from checkpoint.record import Digest

T = TypeVar("T")

ENDED_KEPT_MS = 3_600_000
PAGE = 200
SMALL_BYTES = 64 * 1024
BYTES_OF_IDS = 10_000  # what an entry takes at most beside its state, in the table and in its index
LAST_TEXT = "\U0010ffff" * 256


class CacheStore:
    """Statements on one connection. Every method raises CacheError for whatever the file does."""

    def __init__(self, connection: CacheConnection, max_bytes: int) -> None:
        self.connection = connection
        self._max_bytes = max_bytes
        self._sql = STATEMENTS
        self._announced_at = 0.0

    def find(self, workflow_id: str, step_id: str, source: str) -> tuple[Entry | None, str | None]:
        """The entry of a key, and the store that `source` led to last. A damaged entry counts as damage of the file."""
        key = (workflow_id, step_id, source)

        def work(connection: sqlite3.Connection) -> tuple[Entry | None, str | None]:
            before = self.connection.writes_seen
            row = connection.execute(self._sql["find"], key).fetchone()
            if row is None:
                return None, None
            *fields, checksum, store_id, writes = row
            self.connection.saw(writes, before)
            return _checked((workflow_id, step_id, *fields), checksum), store_id

        return self.connection.run(work)

    def find_together(
        self, keys: Sequence[tuple[str, str]], source: str
    ) -> tuple[dict[int, Entry], set[int], str | None]:
        """The entries of several keys by their place in `keys`, and the store that `source` led to last.

        And the places of entries whose states are too large to be held together: they are not read.
        """

        def work(connection: sqlite3.Connection) -> tuple[dict[int, Entry], set[int], str | None]:
            before = self.connection.writes_seen
            parameters = [text for key in keys for text in key]
            (_, store_id, writes, *_), *rows = connection.execute(_find_together(len(keys)), (*parameters, source))
            self.connection.saw(writes, before)
            entries: dict[int, Entry] = {}
            large: set[int] = set()
            for row in rows:
                place, state = row[0], row[2]
                if type(state) is int:
                    large.add(place)
                else:
                    entries[place] = _checked(keys[place] + row[1:-1], row[-1])
            return entries, large, store_id

        return self.connection.run(work)

    def takes(self, entry: Entry) -> bool:
        """Whether an entry is small enough for this cache."""
        return entry.size <= self._max_bytes // 2

    def announce(self) -> None:
        """Counts a write that is about to come, and leaves only the write itself to be done."""
        self._announced_at = time.monotonic()
        self.connection.run(self.connection.count_write)
        self.connection.saw_own()

    def put_announced(self, entry: Entry) -> None:
        """Writes a confirmed entry that was announced, unless a newer one stands there."""
        row = entry.row()
        self.connection.run(
            lambda connection: connection.execute(self._sql["put"], row),
            thorough=len(entry.state_data or b"") > SMALL_BYTES,  # a small one hardly ever makes the -shm longer
            looked_at=self._announced_at,
        )

    def put(self, entries: Sequence[Entry]) -> None:
        """Writes confirmed entries in one transaction, each unless a newer one stands there; large ones as a mark."""
        entries = [entry if self.takes(entry) else entry.without_state() for entry in entries]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(self._sql["put"], [entry.row() for entry in entries])
            self._forget_ended(connection, entries)
            self.connection.count_write(connection)

        self._with_room(sum(entry.size for entry in entries), lambda: self.connection.change(work))

    def put_lossy(self, entry: Entry, busy_ms: int) -> bool:
        """Writes an entry that PostgreSQL does not know; False where another tenant's entry stands there."""

        def work(connection: sqlite3.Connection) -> bool:
            written = connection.execute(self._sql["put_lossy"], entry.row()).rowcount == 1
            self.connection.count_write(connection)
            return written

        return self._with_room(entry.size, lambda: self.connection.change(work, busy_ms))

    def drop_seen(self, entry: Entry) -> None:
        """Removes this very entry, not one written since."""
        values = (entry.workflow_id, entry.step_id, entry.checksum(), entry.cached_at)
        self.connection.run(lambda connection: connection.execute(self._sql["drop_seen"], values))

    def drop_scope(self, tenant_id: str | None, workflow_id: str | None, step_id: str | None, busy_ms: int) -> None:
        """Removes the entries of a scope; None stands for all."""
        scope = {"tenant_id": tenant_id, "workflow_id": workflow_id, "step_id": step_id}
        self.connection.change(lambda connection: connection.execute(self._sql["drop_scope"], scope), busy_ms)

    def know_store(self, source: str, store_id: str) -> None:
        """Remembers which store a source leads to."""
        self.connection.run(lambda connection: connection.execute(self._sql["know_store"], (source, store_id)))

    def begin_epoch(self, busy_ms: int) -> int:
        """The number that everything written from now on carries, at least."""
        return self.connection.change(
            lambda connection: int(connection.execute(self._sql["begin_epoch"]).fetchone()[0]), busy_ms
        )

    def replace(
        self, tenant_id: str, workflow_id: str | None, epoch: int, entries: Iterator[Entry], busy_ms: int
    ) -> tuple[int, int, bool]:
        """Puts `entries` in the place of what stood in the scope before `epoch`, in one transaction.

        Returns how many were there, how many are there now, and whether room ran out before the entries did. Whatever
        `entries` raises passes through, and nothing has changed then.
        """
        scope = {"tenant_id": tenant_id, "workflow_id": workflow_id, "epoch": epoch}

        def work(connection: sqlite3.Connection) -> tuple[int, int, bool]:
            before: int = connection.execute(self._sql["count_before"], scope).fetchone()[0]
            connection.execute(self._sql["drop_before"], scope)
            written, size, room = 0, 0, 0
            full = False
            for entry in entries:
                size += entry.size
                needed = 2 * entry.size + BYTES_OF_IDS
                if room < needed:
                    room = self._make_room(connection, needed, epoch)
                full = size > self._max_bytes * 3 // 4 or room < needed
                if full:
                    break
                connection.execute(self._sql["put"], entry.row())
                room -= needed
                written += 1
            self.connection.count_write(connection)
            return before, written, full

        return self.connection.change(work, busy_ms)

    def digests(
        self, workflow_id: str | None, tenant_id: str | None, ours: Callable[[Entry], bool]
    ) -> Iterator[Digest]:
        """Digests of a scope in key order, page by page, of the entries that `ours` accepts."""
        after = (workflow_id or "", "")
        while True:
            scope = {
                "last_workflow": LAST_TEXT if workflow_id is None else workflow_id,
                "tenant_id": tenant_id,
                "after_workflow": after[0],
                "after_step": after[1],
                "limit": PAGE,
            }
            last, digests = self.connection.run(partial(self._page, scope=scope, ours=ours), thorough=True)
            yield from digests
            if last is None:
                return
            after = last

    def digest_of(self, workflow_id: str, step_id: str, ours: Callable[[Entry], bool]) -> list[Digest]:
        """The digest of one key, if it has an entry that `ours` accepts."""
        parameters = {"workflow_id": workflow_id, "step_id": step_id}
        row = self.connection.run(lambda connection: connection.execute(self._sql["one"], parameters).fetchone())
        return [] if row is None else self._digest(row, ours)

    def count(self, tenant_id: str | None) -> int:
        """How many entries there are, of one tenant or of all."""
        scope = {"tenant_id": tenant_id}
        return self.connection.run(lambda connection: int(connection.execute(self._sql["count"], scope).fetchone()[0]))

    def size_and_mode(self) -> tuple[int, str]:
        """Bytes of the file's pages, and the journal mode."""

        def work(connection: sqlite3.Connection) -> tuple[int, str]:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            return pages * page_size, str(mode)

        return self.connection.run(work, thorough=True)

    def _page(
        self, connection: sqlite3.Connection, scope: dict[str, Any], ours: Callable[[Entry], bool]
    ) -> tuple[tuple[str, str] | None, list[Digest]]:
        digests: list[Digest] = []
        last = None
        rows = 0
        for row in connection.execute(self._sql["page"], scope):
            last, rows = (row[0], row[1]), rows + 1
            digests += self._digest(row, ours)
        return (last if rows == scope["limit"] else None), digests

    @staticmethod
    def _digest(row: tuple[Any, ...], ours: Callable[[Entry], bool]) -> list[Digest]:
        """The digest of an entry; an entry that does not match its checksum equals nothing."""
        entry = Entry(*row[:-1])
        if not ours(entry):
            return []
        try:
            intact = entry.checksum() == row[-1]
            digest = entry.digest()
        except (TypeError, ValueError, AttributeError):
            raise Damage("an entry holds what was never written") from None
        return [digest if intact else msgspec.structs.replace(digest, sha256=b"")]

    def _make_room(self, connection: sqlite3.Connection, size: int, epoch: int) -> int:
        """Bytes of pages that can be filled, `size` at least if the entries of before `epoch` can make that room.

        In advance, since a statement that finds no room takes its whole transaction back.
        """
        while True:
            pages, free, most, page_size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "freelist_count", "max_page_count", "page_size")
            )
            room = int((most - pages + free) * page_size)
            if room >= size or not self._evict(connection, size, before_epoch=epoch):
                return room

    def _with_room(self, size: int, work: Callable[[], T]) -> T:
        """Does `work`, a second time after the oldest entries have gone if the file had reached its limit."""
        try:
            return work()
        except CacheError as error:
            if error.__cause__ is None or not is_full(error.__cause__):
                raise
        self.connection.change(lambda connection: self._evict(connection, size))
        return work()

    def _evict(self, connection: sqlite3.Connection, size: int, before_epoch: int | None = None) -> bool:
        """Removes the oldest entries to make room for `size` bytes and some more; whether there were any."""
        wanted = max(2 * size, self._max_bytes // 10)
        victims = []
        for rowid, length, epoch in connection.execute(self._sql["oldest"]):
            if before_epoch is not None and epoch >= before_epoch:
                continue
            victims.append((rowid,))
            wanted -= (length or 0) + 200
            if wanted <= 0:
                break
        connection.executemany(self._sql["evict"], victims)
        return bool(victims)

    def _forget_ended(self, connection: sqlite3.Connection, entries: list[Entry]) -> None:
        ended = [entry.cached_at for entry in entries if entry.state_data is None]
        if ended:
            connection.execute(self._sql["forget_ended"], (max(ended) - ENDED_KEPT_MS,))


@lru_cache(16)
def _find_together(count: int) -> str:
    return STATEMENTS["find_together"].replace("{keys}", ", ".join(f"({place}, ?, ?)" for place in range(count)))


def _checked(fields: Sequence[Any], checksum: object) -> Entry:
    """The entry, if it is what was written. Raises Damage."""
    try:
        entry = Entry(*fields)
        intact = entry.checksum() == checksum
    except (TypeError, ValueError, AttributeError):
        intact = False
    if not intact:
        raise Damage("an entry does not match its checksum")
    return entry
