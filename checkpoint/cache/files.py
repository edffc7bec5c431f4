"""The cache file, its `-wal` and its `-shm`: made, compared and moved aside as one (contract, section 3).

They belong together: an old `-wal` beside a new file brings old rows back. Making and moving happen under a lock file,
so that no process moves a fresh file aside.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import time
from typing import TYPE_CHECKING

from checkpoint.cache.failure import CacheError
from checkpoint.folder import make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

Inode = tuple[int, int]
Identity = tuple[Inode | None, ...]

APPLICATION_ID = 0x63706D67
VERSION = 2
KEEP_ASIDE = 3
LOCK_SECONDS = 0.05
PRIVATE = 0o600
_SUFFIXES = ("", "-wal", "-shm")
_SCHEMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schema.sql")


class CacheFiles:
    """The three files at `path`, shared by the connections of a process.

    `made` counts how often this process has made them, `writes_seen` is the count of writes that it has seen in them.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.made = 0
        self.writes_seen = 0
        self._wal_path, self._shm_path = path + "-wal", path + "-shm"
        self._shm_size = 0

    def identity(self) -> Identity:
        """Which files stand there now."""
        return tuple(inode(self.path + suffix) for suffix in _SUFFIXES)

    def are_still(self, identity: Identity, *, wal_too: bool) -> bool:
        """Whether the files of an open connection are still in their places.

        A `-shm` that was cut back gets its length again: SQLite has it mapped, and what is missing would end the
        process. The part that comes back is empty, which makes SQLite read the index again from the `-wal`. A `-shm` or
        `-wal` that is gone, while a connection holds it, makes processes work on different ones: all go aside then.
        """
        if identity[0] != inode(self.path):
            self._part_from(identity)
            return False
        shm = self._status_of_shm()
        if shm is None or identity[2] != (shm.st_dev, shm.st_ino) or (wal_too and identity[1] != inode(self._wal_path)):
            self.move_aside(identity[0])
            return False
        self._make_whole(shm)
        self._shm_size = max(self._shm_size, shm.st_size)
        return True

    def shm_is_whole(self) -> bool:
        """Whether the `-shm` still has its length; without it the next use of the connection ends the process."""
        shm = self._status_of_shm()
        return shm is not None and shm.st_size >= self._shm_size

    def note_shm(self) -> None:
        """Takes note of the length of the `-shm`, after a connection was made or may have made it longer."""
        shm = self._status_of_shm()
        if shm is not None:
            self._shm_size = shm.st_size

    def before_closing(self, identity: Identity) -> None:
        """Makes sure that closing the connection finds the `-shm` whole; where another one stands, its own is."""
        shm = self._status_of_shm()
        if shm is not None and identity and identity[2] == (shm.st_dev, shm.st_ino):
            with contextlib.suppress(OSError):
                self._make_whole(shm)

    def _part_from(self, identity: Identity) -> None:
        """Takes the `-wal` and `-shm` away that belong to a file which others have replaced.

        SQLite would bring old rows back from the one, and cut the other to nothing under a connection of this process
        that still has it mapped: it knows the files of a connection by the main one.
        """
        with contextlib.suppress(OSError, CacheError), self._lock():
            for suffix, ours in zip(_SUFFIXES[1:], identity[1:], strict=False):
                if ours is not None and ours == inode(self.path + suffix):
                    os.unlink(self.path + suffix)

    def _status_of_shm(self) -> os.stat_result | None:
        try:
            return os.stat(self._shm_path)
        except OSError:
            return None

    def _make_whole(self, shm: os.stat_result) -> None:
        if shm.st_size < self._shm_size:
            os.truncate(self._shm_path, self._shm_size)  # by its name: closing a descriptor would drop SQLite's locks

    def make_if_missing(self) -> None:
        """Makes the file, complete, unless there is one; what is left over of an earlier one goes."""
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

    def move_aside(self, damaged: Inode | None) -> None:
        """Moves the damaged file out of the way, unless somebody has already put another in its place.

        Called before the connection to it is closed, since the last one to close would remove the `-wal`.
        """
        with contextlib.suppress(OSError, CacheError), self._lock():
            if damaged is None or damaged != inode(self.path):
                return
            stamp = f"{time.time_ns():020d}"
            for suffix in _SUFFIXES:
                with contextlib.suppress(FileNotFoundError):
                    os.rename(self.path + suffix, f"{self.path}.corrupt-{stamp}{suffix}")
            self._drop_old_ones()

    def _make(self) -> None:
        """Makes it under another name first, so that nobody ever opens half of it."""
        new = f"{self.path}.new"
        for suffix in ("", "-journal", *_SUFFIXES[1:]):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new + suffix)
        descriptor = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE)
        os.fchmod(descriptor, PRIVATE)
        os.close(descriptor)
        with contextlib.closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            with open(_SCHEMA, encoding="utf-8") as file:
                connection.executescript(file.read())
            connection.execute(f"PRAGMA user_version = {VERSION}")
        os.rename(new, self.path)
        self.made += 1

    def _drop_old_ones(self) -> None:
        folder, name = os.path.split(self.path)
        prefix = f"{name}.corrupt-"
        stamps = sorted(
            {entry[len(prefix) :].split("-")[0] for entry in os.listdir(folder) if entry.startswith(prefix)}
        )
        for stamp in stamps[:-KEEP_ASIDE]:
            for suffix in _SUFFIXES:
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(folder, f"{prefix}{stamp}{suffix}"))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        descriptor = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            if os.fstat(descriptor).st_mode & 0o777 != PRIVATE:
                os.fchmod(descriptor, PRIVATE)
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


def inode(path: str) -> Inode | None:
    """Device and inode of what stands at `path`, None for nothing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
