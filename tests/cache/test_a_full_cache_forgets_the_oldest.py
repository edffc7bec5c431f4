"""CHECKPOINT_CACHE_MAX_BYTES: the cache stays within it, and the oldest entries go first (contract, section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done
from tests.support.cache_file import NAME, query
from tests.support.place import NO_HURRY
from tests.support.process import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

MAX_BYTES = 1_000_000
STATE = {"x": "x" * 50_000}
STEPS = [f"step {number:03}" for number in range(60)]


@pytest.fixture
def small(start_worker: StartWorker) -> Worker:
    """A worker whose cache holds about twenty of these states."""
    return start_worker({"CHECKPOINT_CACHE_MAX_BYTES": str(MAX_BYTES), "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})


def test_the_newest_stay_and_the_file_keeps_its_size(small: Worker, folder: Path) -> None:
    """Three times what fits: every save succeeds and is cached, the last ones are hits, the file does not grow."""
    for step in STEPS:
        assert done(small, "save", workflow_id="wf", step_id=step, state_data=STATE)["cache_written"] is True
        assert done(small, "cached_get", workflow_id="wf", step_id=step)["source"] == "sqlite"
    cached = [step for (step,) in query(folder, "SELECT step_id FROM checkpoint_cache ORDER BY step_id")]
    assert 5 <= len(cached) < 25
    assert cached == STEPS[-len(cached) :]
    assert (folder / NAME).stat().st_size <= MAX_BYTES
    assert done(small, "cached_get", workflow_id="wf", step_id=STEPS[0])["source"] == "pg"


def test_a_state_that_is_too_large_for_the_cache_is_served_from_postgresql(small: Worker) -> None:
    """It is saved, cache_written is false, and neither it nor the older value of its key is served from the cache."""
    key = {"workflow_id": "wf", "step_id": "s"}
    assert done(small, "save", **key, state_data={"n": 1})["cache_written"] is True
    saved = done(small, "save", **key, state_data={"n": 2, "x": "x" * MAX_BYTES})
    assert saved["cache_written"] is False
    for _ in range(2):
        row = done(small, "cached_get", **key)
        assert (row["source"], row["backfilled"], row["state_data"]["n"]) == ("pg", False, 2)
    assert done(small, "save", **key, state_data={"n": 3})["cache_written"] is True
    assert done(small, "cached_get", **key)["source"] == "sqlite"


def test_a_lossy_entry_that_is_too_large_is_not_written(small: Worker) -> None:
    """`cache` of more than fits answers written false; the entries that are there stay."""
    done(small, "save", workflow_id="wf", step_id="s", state_data={"n": 1})
    answer = done(small, "cache", workflow_id="wf", step_id="big", state_data={"x": "x" * 2 * MAX_BYTES})
    assert answer["written"] is False
    assert done(small, "cached_get", workflow_id="wf", step_id="big")["found"] is False


def test_a_rebuild_takes_the_newest_that_fit(small: Worker, sql: Connection, folder: Path) -> None:
    """More rows than the cache may hold: truncated is true, the newest are there, the file keeps its size."""
    done(small, "get", workflow_id="wf", step_id="s")
    sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data, updated_at)"
        " SELECT 'wf', to_char(n, '\"step \"FM000'), json_build_object('x', repeat('x', 50000)), now() - (100 - n) * interval '1 s'"
        " FROM generate_series(0, 59) AS n"
    )
    answer = done(small, "rebuild")
    assert answer["truncated"] is True
    assert 5 <= answer["rebuilt_count"] < 25
    cached = [step for (step,) in query(folder, "SELECT step_id FROM checkpoint_cache ORDER BY step_id")]
    assert cached == STEPS[-answer["rebuilt_count"] :]
    assert (folder / NAME).stat().st_size <= MAX_BYTES
    after = done(small, "verify")
    assert after["mismatch_counts"] == {"cache_only": 0, "pg_only": 60 - len(cached), "data_mismatch": 0}


@pytest.mark.parametrize("letters", [20, 700, 2_200, 9_000])
def test_a_rebuild_makes_room_among_the_entries_of_others(
    small: Worker, sql: Connection, folder: Path, letters: int
) -> None:
    """The cache is full of another tenant's entries: they go, oldest first, and the rebuild is done."""
    done(small, "get", workflow_id="wf", step_id="s")
    count = MAX_BYTES // (letters + 300)
    for tenant, share in (("other", 2.0), ("default", 0.4)):
        sql.execute(
            "INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data)"
            " SELECT 'wf ' || %(tenant)s, 'step ' || n, %(tenant)s, json_build_object('x', repeat('x', %(letters)s))"
            " FROM generate_series(1, %(count)s) AS n",
            {"tenant": tenant, "letters": letters, "count": int(count * share)},
        )
    assert done(small, "rebuild", tenant_id="other")["rebuilt_count"] > count * 0.4
    answer = done(small, "rebuild")
    assert (answer["rebuilt_count"], answer["truncated"]) == (int(count * 0.4), False)
    assert (folder / NAME).stat().st_size <= MAX_BYTES
    after = done(small, "verify", tenant_id="default")
    assert after["consistent"] is True


def test_more_at_once_than_the_cache_holds_leaves_it_working(small: Worker, folder: Path) -> None:
    """Bursts of more than fits: the newest are cached soon, and so is what comes afterwards."""
    for burst in range(3):
        for step in STEPS:
            small.send({"action": "save", "workflow_id": "wf", "step_id": step, "state_data": STATE | {"n": burst}})
        assert all(answer["success"] for answer in small.read_lines(len(STEPS)))
    until(lambda: done(small, "cached_get", workflow_id="wf", step_id=STEPS[-1])["source"] == "sqlite", "it is cached")
    for step in STEPS[:3]:
        assert done(small, "save", workflow_id="wf", step_id=step, state_data=STATE)["cache_written"] is True
    assert (folder / NAME).stat().st_size <= MAX_BYTES
