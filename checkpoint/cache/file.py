"""The cache file: made, opened, watched for replacement, and moved aside when it is damaged (contract, section 3).

The file, its `-wal` and its `-shm` belong together: an old `-wal` beside a new file brings old rows back, so they are
made, compared and moved as one. Making and moving happen under a lock file, so that no process moves a fresh file
aside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from typing import TYPE_CHECKING, TypeVar

from checkpoint import sqlfile
from checkpoint.cache.failure import CacheError, Damage, is_busy, is_damage
from checkpoint.folder import make_private

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")
Identity = tuple[tuple[int, int] | None, ...]

APPLICATION_ID = 0x63706D67
VERSION = 1
SHM_BYTES = 32768  # a shorter -shm under an open connection would end the process with SIGBUS
KEEP_ASIDE = 3
LOCK_SECONDS = 0.05
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_SUFFIXES = ("", "-wal", "-shm")


class CacheFile:
    """One connection to the cache file, for one thread at a time; reopened when the file was replaced or moved.

    `made` is shared by the connections of a process: the identities of files that this process made itself.
    `on_replaced` is called when a file was found that others put in the place of the one in use.
    """

    statements = sqlfile.load(os.path.join(_FOLDER, "statements.sql"))

    def __init__(
        self,
        path: str,
        max_bytes: int,
        busy_ms: int,
        made: set[tuple[int, int] | None],
        on_replaced: Callable[[], None],
    ) -> None:
        self.path = path
        self._max_bytes = max_bytes
        self._busy_ms = busy_ms
        self._made = made
        self._on_replaced = on_replaced
        self._connection: sqlite3.Connection | None = None
        self._identity: Identity = ()
        self._abandoned: list[sqlite3.Connection] = []

    def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` makes of the connection. Raises CacheError, and nothing else, for whatever the file does."""
        try:
            return work(self._open())
        except CacheError:
            raise
        except (sqlite3.Error, OverflowError, UnicodeError, OSError, Damage) as error:
            if is_damage(error):
                self.move_aside()
                raise CacheError("the cache file was damaged and has been moved aside", damaged=True) from error
            if not is_busy(error):
                self.close()
            raise CacheError(f"the cache file cannot be used ({error})") from error

    def change(self, work: Callable[[sqlite3.Connection], T], busy_ms: int | None = None) -> T:
        """The same inside one transaction that holds the write lock; `busy_ms` bounds the wait for that lock."""

        def transaction(connection: sqlite3.Connection) -> T:
            with self._waiting(connection, busy_ms):
                connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise
            return result

        return self.run(transaction)

    def close(self) -> None:
        """Closes the connection; the next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._shm_is_short():
            self._abandoned.append(connection)  # closing it would touch the mapping
            return
        with contextlib.suppress(sqlite3.Error):
            connection.close()

    def move_aside(self) -> None:
        """Moves the damaged file out of the way, unless somebody has already put another in its place."""
        damaged = self._identity[0] if self._connection is not None else _identity_of(self.path)
        self.close()
        with contextlib.suppress(OSError, CacheError), self._lock():
            if damaged is not None and damaged == _identity_of(self.path):
                self._rename()

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

    def _open(self) -> sqlite3.Connection:
        connection = self._connection
        if connection is not None:
            if self._identity == self._look() and not self._shm_is_short():
                return connection
            self.close()
        before = self._identity
        for _ in range(2):
            self._make_if_missing()
            try:
                self._connection = connection = self._connect()
                break
            except (sqlite3.Error, Damage) as error:
                if not is_damage(error):
                    raise
                self.move_aside()
        else:
            raise CacheError("the cache file is damaged and cannot be moved aside")
        self._identity = self._look()
        freshly_made = self._identity[0] in self._made and self._identity[:1] != before[:1]
        if before and self._identity != before and not freshly_made:
            self._on_replaced()
        return connection

    def _connect(self) -> sqlite3.Connection:
        from urllib.parse import quote

        connection = sqlite3.connect(
            f"file:{quote(self.path)}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, timeout=0
        )
        try:
            connection.execute(f"PRAGMA busy_timeout = {self._busy_ms}")
            marks = (
                connection.execute("PRAGMA application_id").fetchone(),
                connection.execute("PRAGMA user_version").fetchone(),
            )
            if marks != ((APPLICATION_ID,), (VERSION,)):
                raise Damage("not a cache file of this version")
            connection.execute("PRAGMA synchronous = OFF")
            (page_size,) = connection.execute("PRAGMA page_size").fetchone()
            connection.execute(f"PRAGMA max_page_count = {max(16, self._max_bytes // page_size)}")
            connection.execute("PRAGMA journal_size_limit = 16777216")
            connection.execute("SELECT epoch FROM cache_epoch").fetchone()  # opens -wal and -shm
        except BaseException:
            connection.close()
            raise
        return connection

    def _make_if_missing(self) -> None:
        if os.path.lexists(self.path):
            return
        make_private(os.path.dirname(self.path))
        with self._lock():
            if os.path.lexists(self.path):
                return
            for suffix in _SUFFIXES[1:]:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self.path + suffix)
            self._make()

    def _make(self) -> None:
        """Makes the file complete under another name, so that nobody ever opens half of it."""
        new = f"{self.path}.new"
        for suffix in ("", "-journal", *_SUFFIXES[1:]):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new + suffix)
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.fchmod(descriptor, 0o600)
        os.close(descriptor)
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            with open(os.path.join(_FOLDER, "schema.sql"), encoding="utf-8") as file:
                connection.executescript(file.read())
            connection.execute(f"PRAGMA user_version = {VERSION}")
        os.rename(new, self.path)
        self._made.add(_identity_of(self.path))

    def _rename(self) -> None:
        stamp = f"{time.time_ns():020d}"
        for suffix in _SUFFIXES:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self.path + suffix, f"{self.path}.corrupt-{stamp}{suffix}")
        folder, name = os.path.split(self.path)
        aside = sorted(
            {entry[: len(name) + 29] for entry in os.listdir(folder) if entry.startswith(name + ".corrupt-")}
        )
        for old in aside[:-KEEP_ASIDE]:
            for suffix in _SUFFIXES:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, old + suffix))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        descriptor = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            give_up = time.monotonic() + LOCK_SECONDS
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > give_up:
                        raise CacheError("another process holds the lock of the cache file") from None
                    time.sleep(0.002)
            yield
        finally:
            os.close(descriptor)

    def _look(self) -> Identity:
        return tuple(_identity_of(self.path + suffix) for suffix in _SUFFIXES)

    def _shm_is_short(self) -> bool:
        try:
            return os.stat(self.path + "-shm").st_size < SHM_BYTES
        except OSError:
            return False  # unlinked, the mapping stays whole


def _identity_of(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
