"""The cache file lost or replaced under a running worker: a miss, then a fresh file, and nothing old (contract, section 3)."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done
from tests.support.cache_file import (
    COMPANIONS,
    NAME,
    cached_state,
    overwrite,
    replace,
    settled,
    until_cached,
    write_locked,
)
from tests.support.golden import delete_cache
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.place import Place
    from tests.support.worker import Worker

KEY = {"workflow_id": "wf", "step_id": "s"}
STEPS = [f"step {number}" for number in range(5)]

LOSSES: dict[str, Callable[[Path], object]] = {
    "all three files": delete_cache,
    "cache.db alone": lambda folder: (folder / NAME).unlink(),
    "the whole folder": shutil.rmtree,
    "moved away": lambda folder: (folder / NAME).rename(folder.with_name("elsewhere")),
}


def test_a_lost_file_is_a_miss_and_then_a_fresh_file(place: Place, key: dict[str, str]) -> None:
    """The first cached_get after the loss comes from PostgreSQL and fills the cache again, the second from the cache."""
    for number, (name, lose) in enumerate([*LOSSES.items()] * 3):
        done(place.worker, "save", **key, state_data={"n": number})
        lose(place.folder)
        miss, hit = (done(place.worker, "cached_get", **key) for _ in range(2))
        assert (miss["source"], miss["backfilled"]) == ("pg", True), name
        assert (hit["source"], hit["backfilled"]) == ("sqlite", False), name
        assert miss["state_data"] == hit["state_data"] == {"n": number}, name


def test_what_is_written_first_after_a_loss_is_served(place: Place, key: dict[str, str]) -> None:
    """A save or a `cache` that comes upon the loss makes the fresh file, and what it wrote is a hit."""
    lossy = {**key, "step_id": "lossy"}
    done(place.worker, "save", **key, state_data={"n": -1})
    for number, (name, lose) in enumerate([*LOSSES.items()] * 3):
        lose(place.folder)
        assert done(place.worker, "save", **key, state_data={"n": number})["cache_written"] is True
        row = done(place.worker, "cached_get", **key)
        assert (row["source"], row["state_data"]) == ("sqlite", {"n": number}), name
        lose(place.folder)
        assert done(place.worker, "cache", **lossy, state_data={"n": number})["written"] is True
        row = done(place.worker, "cached_get", **lossy)
        assert (row["source"], row.get("state_data")) == ("sqlite", {"n": number}), name


def saved_and_cached(worker: Worker, folder: Path, number: int) -> bool:
    """Saves, and tells whether the file in the folder has it."""
    done(worker, "save", **KEY, state_data={"n": number})
    try:
        return bool(cached_state(folder, **KEY) == {"n": number})
    except sqlite3.OperationalError:  # the file is not there, or is being made
        return False


def test_companions_lost_alone_are_harmless(worker: Worker, folder: Path) -> None:
    """The -wal, the -shm or both deleted, cache.db still there: right values, and the worker uses what then stands there."""
    for number, lost in enumerate([["-wal"], ["-shm"], ["-wal", "-shm"]] * 2):
        for step in STEPS:
            done(worker, "save", workflow_id="wf", step_id=step, state_data={"n": number, "of": step})
        for suffix in lost:
            (folder / (NAME + suffix)).unlink()
        for step in STEPS:
            for _ in range(2):
                row = done(worker, "cached_get", workflow_id="wf", step_id=step)
                assert row["state_data"] == {"n": number, "of": step}, lost
        until(partial(saved_and_cached, worker, folder, number), "the worker uses the file that is there")
        with write_locked(folder):
            assert done(worker, "save", **KEY, state_data={"n": "late"})["cache_written"] is False, lost
            assert done(worker, "cached_get", **KEY)["state_data"] == {"n": "late"}
        until_cached(folder, **KEY, state={"n": "late"})
    done(worker, "rebuild")
    assert done(worker, "verify")["consistent"] is True
    assert worker.finish() == []


def test_a_replaced_file_gets_companions_of_its_own(patient_worker: Worker, folder: Path) -> None:
    """SQLite would cut the old -shm under connections that still use it, and read rows from the old -wal."""
    done(patient_worker, "save", **KEY, state_data={"n": 1})
    shm = folder / f"{NAME}-shm"
    before = shm.stat().st_ino
    kept = shm.open("rb")  # so that its inode is not used again
    replace(folder / NAME, (folder / NAME).read_bytes())
    done(patient_worker, "save", **KEY, state_data={"n": 2})
    assert done(patient_worker, "cached_get", **KEY)["state_data"] == {"n": 2}
    assert shm.stat().st_ino != before
    kept.close()


@pytest.mark.parametrize("kept", [(), COMPANIONS[1:]], ids=["alone", "beside the present -wal"])
def test_an_older_copy_in_its_place_brings_nothing_back(
    patient_worker: Worker, folder: Path, kept: tuple[str, ...]
) -> None:
    """A cache.db from before the last save, put in the place of the file, is not served by the worker that saved."""
    done(patient_worker, "save", **KEY, state_data={"n": 1})
    old = settled(folder)
    done(patient_worker, "save", **KEY, state_data={"n": 2})
    replace(folder / NAME, old)
    for suffix in set(COMPANIONS[1:]) - set(kept):
        (folder / (NAME + suffix)).unlink()
    assert done(patient_worker, "cached_get", **KEY)["state_data"] == {"n": 2}
    assert done(patient_worker, "cached_get", **KEY)["state_data"] == {"n": 2}


def test_an_older_copy_written_into_the_file_brings_nothing_back(patient_worker: Worker, folder: Path) -> None:
    """The same where the older content was copied into the very file, as `cp` does."""
    done(patient_worker, "save", **KEY, state_data={"n": 1})
    old = settled(folder)
    done(patient_worker, "save", **KEY, state_data={"n": 2})
    settled(folder)
    overwrite(folder / NAME, old)
    assert done(patient_worker, "cached_get", **KEY)["state_data"] == {"n": 2}


def test_a_restored_copy_that_others_went_on_writing_to_brings_nothing_back(
    start_worker: StartWorker, folder: Path, tmp_path: Path
) -> None:
    """An older copy restored by SQLite, then written to by another process, is behind what this process was told."""
    worker, another = start_worker(), start_worker()
    done(worker, "save", **KEY, state_data={"n": 1})
    done(another, "cached_get", **KEY)
    with closing(sqlite3.connect(folder / "cache.db")) as cache, closing(sqlite3.connect(tmp_path / "copy")) as copy:
        cache.backup(copy)
    done(worker, "save", **KEY, state_data={"n": 2})
    with closing(sqlite3.connect(tmp_path / "copy")) as copy, closing(sqlite3.connect(folder / "cache.db")) as cache:
        copy.backup(cache)
    for step in ("other", "another"):
        done(another, "save", workflow_id="wf", step_id=step, state_data={})
    assert done(worker, "cached_get", **KEY)["state_data"] == {"n": 2}


def test_a_wal_left_alone_brings_nothing_back(start_worker: StartWorker, folder: Path, sql: Connection) -> None:
    """cache.db gone and its -wal still there: what the -wal holds is not served."""
    first = start_worker()
    done(first, "save", **KEY, state_data={"n": 1})
    first.kill()
    assert (folder / f"{NAME}-wal").stat().st_size > 0
    sql.execute("UPDATE workflow_checkpoints SET state_data = '{\"n\": 2}', revision = 2")
    (folder / NAME).unlink()
    second = start_worker()
    row = done(second, "cached_get", **KEY)
    assert (row["source"], row["state_data"]) == ("pg", {"n": 2})
    assert done(second, "verify")["consistent"] is True
