"""The count of cache writes tells an older file from this one; what is not committed does not count (contract, section 3)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from checkpoint import CheckpointManager
from checkpoint.cache.failure import CacheError
from tests.support.cache_file import moved_aside

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from checkpoint.cache.connection import CacheConnection


@pytest.fixture
def manager(folder: Path) -> Iterator[CheckpointManager]:
    """Without a database, so that what the cache does not serve is an error. It has cached {"n": 1}."""
    with CheckpointManager(database_url=None, data_dir=folder) as manager:
        assert manager.cache("wf", "s", {"n": 1}).written
        time.sleep(0.005)  # an entry of this very millisecond would be trusted all the same
        yield manager


def front(manager: CheckpointManager) -> CacheConnection:
    """The connection that serves."""
    return manager._runtime.cache._store.connection


def background(manager: CheckpointManager) -> CacheConnection:
    """One more on the same file, as the thread in the background has it."""
    return manager._runtime.cache._writer._connect(0)


def served(manager: CheckpointManager) -> object:
    """What a hit gives. Raises CheckpointError where there is none."""
    hit = manager.cached_get("wf", "s")
    assert hit.source == "sqlite"
    return hit.state_data


@pytest.mark.parametrize("connection_of", [front, background])
def test_a_write_that_cannot_be_committed(
    manager: CheckpointManager, folder: Path, connection_of: Callable[[CheckpointManager], CacheConnection]
) -> None:
    """A transaction has counted itself and its COMMIT fails: what was cached before is served, and later writes too."""
    connection = connection_of(manager)

    def counts_and_leaves_an_orphan(cache: sqlite3.Connection) -> None:
        connection.count_write(cache)
        cache.execute("CREATE TEMP TABLE parent (id PRIMARY KEY)")
        cache.execute("CREATE TEMP TABLE child (id REFERENCES parent DEFERRABLE INITIALLY DEFERRED)")
        cache.execute("INSERT INTO child VALUES (1)")

    for _ in range(2):
        connection.run(lambda cache: cache.execute("PRAGMA foreign_keys = ON"))
        with pytest.raises(CacheError, match="FOREIGN KEY"):
            connection.change(counts_and_leaves_an_orphan)
        assert served(manager) == {"n": 1}
    assert manager.cache("wf", "s", {"n": 2}).written
    time.sleep(0.005)
    assert served(manager) == {"n": 2}
    connection.close()
    assert moved_aside(folder) == []


def test_a_write_that_is_not_committed_yet(manager: CheckpointManager) -> None:
    """While the thread in the background is between its count and its commit, what is cached is served."""
    connection = background(manager)

    def counts_and_looks(cache: sqlite3.Connection) -> object:
        connection.count_write(cache)
        return served(manager)

    assert connection.change(counts_and_looks) == {"n": 1}
    assert served(manager) == {"n": 1}
    connection.close()
