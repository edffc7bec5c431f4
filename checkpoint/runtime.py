"""What an action works with: the settings, the authority, the cache, the counters; each made at the first need."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from checkpoint.authority.store import Authority
    from checkpoint.cache.cache import Cache
    from checkpoint.log import Log
    from checkpoint.progress import Progress
    from checkpoint.record import Life, Record
    from checkpoint.settings import Settings

Row = TypeVar("Row")


class Counters:
    """What `healthcheck` tells of this process since it started."""

    def __init__(self) -> None:
        self.started = time.monotonic()
        self.requests = 0
        self.errors: dict[str, int] = {}
        self.cache_hits = 0
        self.cache_misses = 0

    def failed(self, code: str) -> None:
        """Counts one answer with `code`."""
        self.errors[code] = self.errors.get(code, 0) + 1


class Runtime:
    """The parts of one process. Nothing is opened, connected or imported before an action asks for it.

    `progress` is told how far `rebuild` and `verify` have come; a door sets it where someone watches.
    """

    def __init__(self, settings: Settings, environ: Mapping[str, str], log: Log) -> None:
        self.settings = settings
        self.counters = Counters()
        self.log = log
        self.progress: Progress | None = None
        self._environ = environ
        self._authority: Authority | None = None
        self._cache: Cache | None = None

    @property
    def authority(self) -> Authority:
        """PostgreSQL. Raises DB_NOT_CONFIGURED without a DATABASE_URL (contract, section 4)."""
        if self._authority is None:
            if self.settings.database_url is None:
                raise CheckpointError(
                    "DB_NOT_CONFIGURED",
                    "set DATABASE_URL to a PostgreSQL URL such as postgresql://user@host/database, or to embedded:",
                    unreachable=True,
                )
            from checkpoint.authority.store import Authority

            self._authority = Authority(self.settings, self.cache.know_store, self.log)
        return self._authority

    @property
    def cache(self) -> Cache:
        """SQLite. Making it opens nothing yet."""
        if self._cache is None:
            from checkpoint.cache.cache import Cache
            from checkpoint.database_url import source_of

            source = source_of(self.settings.database_url, self.settings.schema, self._environ)
            self._cache = Cache(self.settings, source)
        return self._cache

    def cache_records(self, records: Sequence[Record], asked_at: int) -> bool:
        """Hands what PostgreSQL answered to a question asked at `asked_at` (ms) to the cache.

        Whether it was written within the budget. The time is that of the question, since the answer may have been under
        way for long: what it says was true then at the earliest.
        """
        written = self.cache.put(records, asked_at)
        if not written:
            self.log("DEBUG", "a cache write is not done yet")
        return written

    def cache_ended(self, lives: Sequence[Life]) -> bool:
        """Hands deletions to the cache; whether they were written within the budget."""
        return self.cache.end(lives)

    def forget_call(self) -> None:
        """A call was broken off anywhere: the cache may not know what it has changed in PostgreSQL."""
        if self._cache is not None:
            self._cache.forget_call()

    def watched(self, action: str, rows: Iterator[Row]) -> Iterator[Row]:
        """The rows that a long action reads, counted for `progress` if that is set."""
        if self.progress is None:
            return rows
        from checkpoint.progress import watched

        return watched(rows, action, self.progress)

    def close(self) -> None:
        """Ends everything that was opened; the cache gets up to 2 s to take what is queued."""
        try:
            if self._cache is not None and not self._cache.close():
                self.log("DEBUG", "cache writes were given up at the end of the process")
        finally:  # Ctrl-C may come while it waits
            if self._authority is not None:
                self._authority.close()
