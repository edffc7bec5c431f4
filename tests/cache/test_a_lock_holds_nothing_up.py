"""Another process holds SQLite's write lock: the business goes on, and the cache follows later (contract, section 3, save)."""

from __future__ import annotations

import fcntl
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.asking import done
from tests.support.cache_file import NAME, cached_state, query, until_cached, write_locked
from tests.support.golden import delete_cache
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.place import Place
    from tests.support.steered_clock import SteeredClock
    from tests.support.worker import Worker

KEY = {"workflow_id": "wf", "step_id": "s"}
OTHER = {"workflow_id": "wf", "step_id": "other"}
A_LITTLE = 1.5
DRAINED_WITHIN = 2.0 + 3.0
HELD_BACK = 32 * 1024 * 1024


def seconds(since: float) -> float:
    """How long ago that was."""
    return time.monotonic() - since


@pytest.fixture
def other(key: dict[str, str]) -> dict[str, str]:
    """A second key of the test."""
    return {**key, "step_id": "other"}


@pytest.fixture(autouse=True)
def nothing_waits(hurried: Place) -> Iterator[None]:
    """The next test begins when the shared worker has written everything."""
    yield
    until(
        lambda: done(hurried.worker, "save", workflow_id="last", step_id="s", state_data={})["cache_written"],
        "nothing waits any more",
    )


def until_hit(worker: Worker, key: dict[str, str]) -> None:
    """Waits until the cache serves the key."""
    until(lambda: done(worker, "cached_get", **key)["source"] == "sqlite", f"{key} is a hit")


@pytest.mark.parametrize("budget_ms", [0, 50, 700])
def test_a_save_waits_no_longer_than_the_budget_and_then_not_at_all(
    start_worker: StartWorker, folder: Path, budget_ms: int
) -> None:
    """The save succeeds with cache_written false within the budget; while that write is overdue the next ones add nothing."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": str(budget_ms)})
    done(worker, "save", **KEY, state_data={"n": 1})
    with write_locked(folder):
        started = time.monotonic()
        assert done(worker, "save", **KEY, state_data={"n": 2})["cache_written"] is False
        assert budget_ms / 1000 <= seconds(started) < budget_ms / 1000 + A_LITTLE
        started = time.monotonic()
        for number in range(10):
            assert done(worker, "save", **OTHER, state_data={"n": number})["cache_written"] is False
        assert seconds(started) < A_LITTLE
    until_cached(folder, **KEY, state={"n": 2})
    until_cached(folder, **OTHER, state={"n": 9})


def test_a_save_never_shows_the_older_value(hurried: Place, key: dict[str, str]) -> None:
    """While its cache write waits, cached_get gives the new value; so it does when the lock is gone, then from the cache."""
    done(hurried.worker, "save", **key, state_data={"n": 1})
    with write_locked(hurried.folder):
        done(hurried.worker, "save", **key, state_data={"n": 2})
        for _ in range(20):
            row = done(hurried.worker, "cached_get", **key)
            assert (row["state_data"], row["source"], row["backfilled"]) == ({"n": 2}, "pg", False)
        assert cached_state(hurried.folder, **key) == {"n": 1}
    seen = [done(hurried.worker, "cached_get", **key)["state_data"] for _ in range(50)]
    assert seen == [{"n": 2}] * 50
    until_cached(hurried.folder, **key, state={"n": 2})
    until_hit(hurried.worker, key)
    assert done(hurried.worker, "verify", workflow_id=key["workflow_id"])["consistent"] is True


def test_the_last_of_many_waiting_saves_is_the_one_that_is_cached(hurried: Place, key: dict[str, str]) -> None:
    """Of many saves of one key that wait, the newest reaches the cache."""
    done(hurried.worker, "save", **key, state_data={"n": 0})
    with write_locked(hurried.folder):
        for number in range(1, 30):
            done(hurried.worker, "save", **key, state_data={"n": number})
            assert done(hurried.worker, "cached_get", **key)["state_data"] == {"n": number}
    until_cached(hurried.folder, **key, state={"n": 29})


@pytest.mark.parametrize(
    "removal",
    [
        {"action": "delete", "step_id": "step"},
        {"action": "delete", "all_steps": True},
        {"action": "prune", "older_than_sec": 1000},
    ],
    ids=["one step", "all steps", "prune"],
)
def test_a_removal_is_handed_on_too(hurried: Place, key: dict[str, str], removal: dict[str, Any]) -> None:
    """A deleted row is not served while the cache still holds it, and leaves it when the lock is gone."""
    done(hurried.worker, "save", **key, state_data={"n": 1})
    hurried.sql.execute(
        "UPDATE workflow_checkpoints SET updated_at = updated_at - interval '1 hour' WHERE workflow_id = %s",
        (key["workflow_id"],),
    )
    with write_locked(hurried.folder):
        assert done(hurried.worker, workflow_id=key["workflow_id"], **removal)["deleted_count"] == 1
        for _ in range(5):
            assert done(hurried.worker, "cached_get", **key)["source"] == "none"
        assert cached_state(hurried.folder, **key) is not None
    until_cached(hurried.folder, **key, state=None)
    assert done(hurried.worker, "cached_get", **key)["found"] is False


def test_a_life_after_a_removal_wins(hurried: Place, key: dict[str, str]) -> None:
    """Saved, deleted and saved again while the lock is held: the new life reaches the cache, although its revision is 1."""
    for number in range(5):
        done(hurried.worker, "save", **key, state_data={"life": 1, "n": number})
    with write_locked(hurried.folder):
        done(hurried.worker, "delete", **key)
        done(hurried.worker, "save", **key, state_data={"life": 2})
        assert done(hurried.worker, "cached_get", **key)["state_data"] == {"life": 2}
    until_cached(hurried.folder, **key, state={"life": 2})
    until_hit(hurried.worker, key)
    assert done(hurried.worker, "cached_get", **key)["state_data"] == {"life": 2}


def test_more_than_can_be_held_back_is_never_served_old(
    hurried: Place, key: dict[str, str], other: dict[str, str]
) -> None:
    """Beyond 32 MiB of waiting states a key is only remembered as not to be served; no older value ever comes."""
    steps = [f"step {number}" for number in range(HELD_BACK // 2**20 + 8)]
    for step in steps:
        done(hurried.worker, "save", workflow_id=key["workflow_id"], step_id=step, state_data={"n": "old"})
    with write_locked(hurried.folder):
        for step in steps:
            done(
                hurried.worker,
                "save",
                workflow_id=key["workflow_id"],
                step_id=step,
                state_data={"n": "new", "x": "x" * 2**20},
            )
    until(lambda: done(hurried.worker, "save", **other, state_data={})["cache_written"], "the cache has caught up")
    sources = set()
    for step in (*steps[:2], *steps[-2:]):
        row = done(hurried.worker, "cached_get", workflow_id=key["workflow_id"], step_id=step)
        assert row["state_data"]["n"] == "new", step
        sources.add(row["source"])
    assert sources == {"pg", "sqlite"}


def test_the_age_of_a_late_entry_counts_from_postgresqls_answer(
    start_steered: StartWorker, clock: SteeredClock, folder: Path
) -> None:
    """An entry that was written late is as old as PostgreSQL's answer, not as its writing."""
    worker = start_steered({"CHECKPOINT_CACHE_WAIT_MS": "0"})
    done(worker, "save", **OTHER, state_data={})
    with write_locked(folder):
        done(worker, "save", **KEY, state_data={"n": 1})
        clock.move(200_000)
    until_cached(folder, **KEY, state={"n": 1})
    until_hit(worker, KEY)
    clock.move(100_001)
    assert done(worker, "cached_get", **KEY)["source"] == "pg"


def test_a_lossy_entry_that_was_not_written_is_not_written_later(
    hurried: Place, key: dict[str, str], other: dict[str, str]
) -> None:
    """`cache` answers written false, and when the lock is gone nothing comes after."""
    done(hurried.worker, "save", **key, state_data={"n": 1})
    with write_locked(hurried.folder):
        for one in (key, other):
            answer = done(hurried.worker, "cache", **one, state_data={"lossy": True})
            assert (answer["written"], answer["lossy"]) == (False, True)
    assert (
        done(hurried.worker, "save", workflow_id=key["workflow_id"], step_id="next", state_data={})["cache_written"]
        is True
    )
    assert cached_state(hurried.folder, **key) == {"n": 1}
    assert cached_state(hurried.folder, **other) is None
    assert done(hurried.worker, "cached_get", **other)["found"] is False


def test_a_lossy_entry_does_not_get_ahead_of_a_waiting_save(
    hurried: Place, key: dict[str, str], other: dict[str, str]
) -> None:
    """While a save of the key waits, `cache` does not write; the save is what the cache holds in the end."""
    done(hurried.worker, "save", **other, state_data={})
    with write_locked(hurried.folder):
        done(hurried.worker, "save", **key, state_data={"n": 2})
        assert done(hurried.worker, "cache", **key, state_data={"lossy": True})["written"] is False
    until_cached(hurried.folder, **key, state={"n": 2})


def test_a_hit_does_not_wait_for_the_lock(hurried: Place, key: dict[str, str], other: dict[str, str]) -> None:
    """Entries whose keys nothing waits for are served from the cache while the lock is held."""
    done(hurried.worker, "save", **key, state_data={"n": 1})
    with write_locked(hurried.folder):
        done(hurried.worker, "save", **other, state_data={})
        assert done(hurried.worker, "cached_get", **key)["source"] == "sqlite"


def test_a_miss_is_answered_though_it_cannot_be_filled(hurried: Place, key: dict[str, str]) -> None:
    """A read from PostgreSQL says backfilled false while the cache cannot take it, and the cache gets it later."""
    done(hurried.worker, "save", **key, state_data={"n": 1})
    query(hurried.folder, "DELETE FROM checkpoint_cache WHERE workflow_id = ?", key["workflow_id"])
    with write_locked(hurried.folder):
        row = done(hurried.worker, "cached_get", **key)
        assert (row["source"], row["backfilled"], row["cached_at"]) == ("pg", False, None)
    until_cached(hurried.folder, **key, state={"n": 1})


def test_a_left_over_that_cannot_be_removed_goes_later(
    start_steered: StartWorker, clock: SteeredClock, folder: Path
) -> None:
    """An entry that PostgreSQL does not confirm is not served, although the lock keeps it in the file; then it goes."""
    worker = start_steered({"CHECKPOINT_CACHE_WAIT_MS": "50"})
    done(worker, "cache", **KEY, state_data={"n": 1})
    clock.move(300_001)
    with write_locked(folder):
        assert done(worker, "cached_get", **KEY)["found"] is False
        assert cached_state(folder, **KEY) == {"n": 1}
        clock.move(-300_000)
        assert done(worker, "cached_get", **KEY)["found"] is False
    assert done(worker, "cached_get", **KEY)["found"] is False
    assert cached_state(folder, **KEY) is None


def test_a_queued_write_is_drained_at_the_end_of_input(worker: Worker, folder: Path) -> None:
    """The input ends while a cache write waits: it is still made, if the lock goes in time; status 0."""
    done(worker, "save", **KEY, state_data={"n": 1})
    with write_locked(folder):
        done(worker, "save", **KEY, state_data={"n": 2})
        worker.close_input()
        assert worker.says_nothing(0.3)
    assert worker.read_all() == []
    assert worker.wait() == 0
    assert cached_state(folder, **KEY) == {"n": 2}


def test_the_drain_at_the_end_of_input_is_bounded(worker: Worker, folder: Path) -> None:
    """The lock stays: the process ends all the same, about two seconds later, with status 0."""
    done(worker, "save", **KEY, state_data={"n": 1})
    with write_locked(folder):
        done(worker, "save", **KEY, state_data={"n": 2})
        started = time.monotonic()
        assert worker.finish() == []
        assert 1.5 < seconds(started) < DRAINED_WITHIN


def test_a_held_lock_file_holds_nothing_up(start_worker: StartWorker, folder: Path) -> None:
    """The file is gone and another process holds the lock under which a new one is made: saves go on, within the budget."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": "0"})
    done(worker, "save", **KEY, state_data={"n": 1})
    with (folder / f"{NAME}.lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        delete_cache(folder)
        started = time.monotonic()
        for number in range(2, 6):
            assert done(worker, "save", **KEY, state_data={"n": number})["cache_written"] is False
            assert done(worker, "cached_get", **KEY)["state_data"] == {"n": number}
        assert seconds(started) < 2 * A_LITTLE
    until_cached(folder, **KEY, state={"n": 5})
