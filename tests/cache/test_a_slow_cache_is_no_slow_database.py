"""What the cache takes of a save's time does not count as PostgreSQL's (contract, sections 3 and 4)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from checkpoint import CheckpointManager
from checkpoint.cache.store import CacheStore

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATEMENT_SECONDS = 0.3
SLOW_SECONDS = 0.9  # more than a statement gets, its grace included


@pytest.fixture
def impatient(database_url: str, schema: str, folder: Path) -> Iterator[CheckpointManager]:
    """A manager that gives statements little time, with a checkpoint saved before."""
    with CheckpointManager(database_url=database_url, schema=schema, data_dir=folder) as patient:
        patient.save("wf", "s", {"n": 1})  # makes the tables
    with CheckpointManager(
        database_url=database_url, schema=schema, data_dir=folder, statement_timeout=STATEMENT_SECONDS
    ) as manager:
        yield manager


@pytest.mark.parametrize("expected", [None, 1], ids=["save", "compare and set"])
def test_a_save_whose_look_at_the_cache_is_slow_is_a_success(
    impatient: CheckpointManager, monkeypatch: pytest.MonkeyPatch, expected: int | None
) -> None:
    """The disk of the cache stands still for longer than a statement may take: the save is confirmed, and cached."""
    announce = CacheStore.announce
    slow: list[CacheStore] = []

    def slowly(store: CacheStore) -> None:
        slow.append(store)
        time.sleep(SLOW_SECONDS)
        announce(store)

    monkeypatch.setattr(CacheStore, "announce", slowly)
    saved = impatient.save("wf", "s", {"n": 2}, expected_revision=expected)
    assert slow, "the cache was looked at meanwhile"
    assert (saved.revision, saved.cache_written) == (2, True)
    monkeypatch.undo()
    hit = impatient.cached_get("wf", "s")
    assert (hit.source, hit.state_data) == ("sqlite", {"n": 2})
    assert impatient.save("wf", "s", {"n": 3}).revision == 3
