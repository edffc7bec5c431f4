"""What can go wrong with the cache file, and the one exception that leaves this package."""

from __future__ import annotations

import sqlite3


class CacheError(Exception):
    """The cache could not do it; the business goes on without. `damaged` tells that the file has been moved aside."""

    def __init__(self, message: str, *, damaged: bool = False) -> None:
        super().__init__(message)
        self.damaged = damaged

    @property
    def lasts(self) -> bool:
        """Whether trying again in a moment hardly helps: a missing right, a full disk, against a lock or damage."""
        return self.__cause__ is not None and not self.damaged and not is_busy(self.__cause__)


class Damage(Exception):
    """What was read is not what was written."""


_DAMAGE = (
    sqlite3.SQLITE_ERROR,  # a table or a column is not there
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_SCHEMA,
)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)


def is_damage(error: BaseException) -> bool:
    """Whether the file holds something else than it should, as against a lock, a full disk or a missing right."""
    if isinstance(error, sqlite3.DatabaseError):
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # without one: text that is not UTF-8
        return code & 0xFF in _DAMAGE or code == sqlite3.SQLITE_IOERR_SHORT_READ
    return isinstance(error, Damage | UnicodeError)


def is_busy(error: BaseException) -> bool:
    """Whether another connection holds what was needed; trying again later helps."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def is_full(error: BaseException) -> bool:
    """Whether the file has reached its limit, or the disk has."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_FULL
