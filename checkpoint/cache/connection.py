"""A connection to the cache file, opened at need, and again when the file was replaced (contract, section 3)."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
from typing import TYPE_CHECKING, TypeVar

from checkpoint import sqlfile
from checkpoint.cache.failure import CacheError, Damage, is_busy, is_damage, is_full
from checkpoint.cache.files import APPLICATION_ID, VERSION, CacheFiles, Identity, inode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

LEAST_PAGES = 16
OPEN_TRIES = 3
# A look costs: Linux marks the next write of a file that was looked at with an exact time, and that makes the next
# commit of a PostgreSQL on the same machine a fifth slower. Who writes or reads meanwhile still holds what was in it.
WAL_LOOK_SECONDS = 0.05
LOOK_SECONDS = 0.05
WAL_BYTES = 16 * 1024 * 1024
STATEMENTS = sqlfile.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "statements.sql"))


class CacheConnection:
    """One connection, for one thread at a time.

    `on_replaced` is called when others have put a file in the place of the one in use, or an older state into it.
    """

    def __init__(self, files: CacheFiles, max_bytes: int, busy_ms: int, on_replaced: Callable[[], None]) -> None:
        self._files = files
        self._max_bytes = max_bytes
        self._busy_ms = busy_ms
        self._on_replaced = on_replaced
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity = ()
        self._made = 0
        self._look_at_wal_at = 0.0
        self._counted = 0  # what the last counted write of this connection made the count
        self._counts = False  # whether the transaction under way has one

    def run(
        self, work: Callable[[sqlite3.Connection], T], *, thorough: bool = False, looked_at: float | None = None
    ) -> T:
        """What `work` makes of the connection. Raises CacheError, and nothing else, for whatever the file does.

        What speaks of all of the file is `thorough`: the -wal is looked at, too. What belongs to a request for which
        the files were `looked_at` a moment ago (a monotonic time) does with a look at the -shm.
        """
        try:
            connection = self._connection
            recent = looked_at is not None and time.monotonic() - looked_at < LOOK_SECONDS
            if connection is None or not recent or not self._files.shm_is_whole():
                connection = self._open(thorough=thorough)
            result = work(connection)
            if thorough:
                self._files.note_shm()
            return result
        except CacheError:
            raise
        except (sqlite3.Error, OverflowError, UnicodeError, OSError, Damage) as error:
            if is_damage(error):
                self._files.move_aside(self._identity[0] if self._identity else None)
                self.close()
                with contextlib.suppress(CacheError, sqlite3.Error, OSError):
                    self._open(thorough=True)  # at once: a fresh file is then older than what comes next
                raise CacheError("the cache file was damaged and has been moved aside", damaged=True) from error
            if not is_busy(error) and not is_full(error):
                self.close()
            if isinstance(error, OSError):
                reason = f"{self._files.path} cannot be used: {error.strerror}; make CHECKPOINT_DATA_DIR writable"
                raise CacheError(reason) from error
            raise CacheError(f"the cache file cannot be used ({error})") from error

    def change(self, work: Callable[[sqlite3.Connection], T], busy_ms: int | None = None) -> T:
        """The same inside one transaction that holds the write lock; `busy_ms` bounds the wait for that lock."""

        def transaction(connection: sqlite3.Connection) -> T:
            try:  # Ctrl-C may come with the lock
                with self._waiting(connection, busy_ms):
                    connection.execute("BEGIN IMMEDIATE")
                self._counts = False
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            if self._counts:
                self.saw_own()
            return result

        return self.run(transaction, thorough=True)

    @property
    def writes_seen(self) -> int:
        """The file's count of writes, as far as this process has seen it."""
        return self._files.writes_seen

    def saw(self, writes: int, before: int) -> None:
        """Takes note of the count of writes; `before` was seen before it was read.

        It never falls, but when somebody writes an older copy into the file.
        """
        if writes < before:
            self._on_replaced()
            self._files.writes_seen = writes
        elif writes > self._files.writes_seen:
            self._files.writes_seen = writes

    def count_write(self, connection: sqlite3.Connection) -> None:
        """Counts a write in the file. It is seen only when it stands: other threads read the count meanwhile."""
        before = self._files.writes_seen
        connection.execute(STATEMENTS["count_write"])
        self._counts = True
        (self._counted,) = connection.execute(STATEMENTS["writes"]).fetchone()
        self.saw(self._counted - 1, before)

    def saw_own(self) -> None:
        """Takes note of the last counted write of this connection, which stands now."""
        self._files.writes_seen = max(self._counted, self._files.writes_seen)

    def close(self) -> None:
        """Closes the connection; the next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._files.before_closing(self._identity)
            with contextlib.suppress(sqlite3.Error):
                connection.close()

    @contextlib.contextmanager
    def _waiting(self, connection: sqlite3.Connection, busy_ms: int | None) -> Iterator[None]:
        if busy_ms is None:
            yield
            return
        connection.execute(f"PRAGMA busy_timeout = {busy_ms}")
        try:
            yield
        finally:
            connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")

    def _open(self, *, thorough: bool) -> sqlite3.Connection:
        replaced = False
        if self._connection is not None:
            now = time.monotonic()
            wal_too = thorough or now >= self._look_at_wal_at
            if wal_too:
                self._look_at_wal_at = now + WAL_LOOK_SECONDS
            if self._files.are_still(self._identity, wal_too=wal_too):
                return self._connection
            replaced = True
            self.close()
        connection = self._connect_to_sound_file()
        before, self._identity = self._identity, self._files.identity()
        self._files.note_shm()
        # -wal and -shm alone may have gone with the last connection, and an inode may be used again.
        if replaced or (before and (before[0], self._made) != (self._identity[0], self._files.made)):
            self._files.writes_seen = 0
            self._on_replaced()  # what others put there may come from before a save of ours
        self._made = self._files.made
        self._connection = connection
        return connection

    def _connect_to_sound_file(self) -> sqlite3.Connection:
        for _ in range(OPEN_TRIES):
            self._files.make_if_missing()
            opened = inode(self._files.path)
            connection = self._connect()
            try:
                self._insist(connection)
            except BaseException as error:
                if is_damage(error):
                    self._files.move_aside(opened)
                with contextlib.suppress(sqlite3.Error):
                    connection.close()
                if not is_damage(error):
                    raise
            else:
                if opened == inode(self._files.path):
                    return connection
                with contextlib.suppress(sqlite3.Error):  # replaced meanwhile: which file this is cannot be told
                    connection.close()
        raise CacheError("the cache file is damaged and cannot be moved aside, or is replaced all the time")

    def _connect(self) -> sqlite3.Connection:
        from urllib.parse import quote

        address = f"file:{quote(os.fsencode(self._files.path))}?mode=rw"
        return sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=0)

    def _insist(self, connection: sqlite3.Connection) -> None:
        """Sets the connection up; raises Damage for a file that is not a cache file of this version."""
        connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")
        application_id = connection.execute("PRAGMA application_id").fetchone()
        if (application_id, connection.execute("PRAGMA user_version").fetchone()) != ((APPLICATION_ID,), (VERSION,)):
            raise Damage("not a cache file of this version")
        connection.execute("PRAGMA synchronous = OFF")
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        connection.execute(f"PRAGMA max_page_count = {max(LEAST_PAGES, self._max_bytes // page_size)}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        connection.execute("SELECT epoch, writes FROM cache_history").fetchone()  # opens -wal and -shm
