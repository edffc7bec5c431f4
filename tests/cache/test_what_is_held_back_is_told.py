"""What waits for the cache file is not said to be in it, and gets a last chance at the end (contract, sections 1 and 3)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from checkpoint import CheckpointManager
from checkpoint.cache import writer
from tests.support.process import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.place import Place

STATE = {"x": "x" * 5000}


@pytest.fixture
def url(place: Place, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of the place, whose schema managers of this process use now."""
    monkeypatch.setenv("CHECKPOINT_SCHEMA", place.settings["CHECKPOINT_SCHEMA"] or "")
    return place.settings["DATABASE_URL"] or ""


def test_a_state_too_large_to_be_held_back(
    url: str, workflow: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the file is locked only a mark is kept of it: cache_written is false, and PostgreSQL is asked."""
    monkeypatch.setattr(writer, "HELD_BYTES", 4000)
    with CheckpointManager(database_url=url, data_dir=folder / "held", cache_wait_ms=2000) as manager:
        manager.save(workflow, "s", {})
        with closing(sqlite3.connect(folder / "held" / "cache.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            saved = manager.save(workflow, "s", STATE)
            other.execute("ROLLBACK")
        assert not saved.cache_written
        found = manager.cached_get(workflow, "s")
        assert (found.source, found.state_data) == ("pg", STATE)


def test_a_folder_that_is_mended_right_before_the_end(url: str, workflow: str, folder: Path) -> None:
    """The writer had given the folder up; at the end it tries once more."""
    folder.mkdir(exist_ok=True)
    data = folder / "mended"
    data.touch()
    with CheckpointManager(database_url=url, data_dir=data) as manager:
        assert not manager.save(workflow, "s", STATE).cache_written
        until(lambda: manager.healthcheck().counters.cache_write_failures > 3, "the writer has tried")
        data.unlink()
    with CheckpointManager(database_url=url, data_dir=data) as manager:
        found = manager.cached_get(workflow, "s")
        assert (found.source, found.state_data) == ("sqlite", STATE)
