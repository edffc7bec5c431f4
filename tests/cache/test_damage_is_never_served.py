"""The cache file damaged, of another shape, or changed by others: never an error, never a wrong value (contract, section 3)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done
from tests.support.cache_file import (
    COMPANIONS,
    GARBAGE,
    NAME,
    cached_state,
    moved_aside,
    opened,
    overwrite,
    query,
    replace,
)
from tests.support.place import NO_HURRY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.place import Place
    from tests.support.worker import Worker

KEY = {"workflow_id": "wf", "step_id": "s"}
STEPS = [f"step {number}" for number in range(30)]

DAMAGES: dict[str, Callable[[Path], object]] = {
    "garbage": overwrite,
    "nothing": lambda path: overwrite(path, b""),
    "one byte": lambda path: overwrite(path, b"S"),
    "zeros": lambda path: overwrite(path, bytes(path.stat().st_size)),
    "its first half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "garbage after its first page": lambda path: overwrite(path, path.read_bytes()[:4096] + GARBAGE),
    "noise": lambda path: overwrite(path, os.urandom(path.stat().st_size)),
    "another file": lambda path: replace(path, GARBAGE),
    "an empty file": lambda path: replace(path, b""),
}


@pytest.mark.parametrize("companion", COMPANIONS, ids=lambda suffix: NAME + suffix)
def test_damage_under_a_running_worker_is_never_an_error_and_never_a_wrong_value(
    patient_worker: Worker, folder: Path, companion: str
) -> None:
    """Whatever becomes of the file, its -wal or its -shm: right values, saves succeed, rebuild makes verify consistent."""
    for number, (name, damage) in enumerate(DAMAGES.items()):
        for step in STEPS:
            done(patient_worker, "save", workflow_id="wf", step_id=step, state_data={"n": number, "of": step})
        damage(folder / (NAME + companion))
        for step in STEPS:
            row = done(patient_worker, "cached_get", workflow_id="wf", step_id=step)
            assert row["state_data"] == {"n": number, "of": step}, name
        damage(folder / (NAME + companion))
        saved = done(patient_worker, "save", workflow_id="wf", step_id=STEPS[0], state_data={"n": -1})
        assert saved["revision"] == 2 * number + 2, name
        assert done(patient_worker, "cached_get", workflow_id="wf", step_id=STEPS[0])["state_data"] == {"n": -1}, name
        damage(folder / (NAME + companion))
        assert done(patient_worker, "rebuild")["rebuilt_count"] == len(STEPS), name
        after = done(patient_worker, "verify")
        assert (after["consistent"], after["sqlite_count"]) == (True, len(STEPS)), name
    assert patient_worker.finish() == []


def test_damage_is_met_by_verify_and_healthcheck_too(patient_worker: Worker, folder: Path) -> None:
    """A verify that comes upon garbage tells that the cache is empty; a healthcheck answers; the next save is cached."""
    done(patient_worker, "save", **KEY, state_data={"n": 1})
    overwrite(folder / NAME)
    answer = done(patient_worker, "verify")
    assert answer["consistent"] is (answer["sqlite_count"] == 1)
    overwrite(folder / NAME)
    assert done(patient_worker, "healthcheck")["pg"]["ok"] is True
    done(patient_worker, "save", **KEY, state_data={"n": 2})
    assert done(patient_worker, "cached_get", **KEY)["state_data"] == {"n": 2}


def test_a_large_wal_with_a_short_shm_does_not_end_the_worker(patient_worker: Worker, folder: Path) -> None:
    """An -shm cut back to its first part, while the -wal is so long that more parts are in use, is survived."""
    done(patient_worker, "save", **KEY, state_data={})
    shm = folder / f"{NAME}-shm"
    part = shm.stat().st_size
    steps: list[str] = []
    with opened(folder) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM checkpoint_cache").fetchone()  # holds the -wal as it is
        while shm.stat().st_size == part:
            steps.append(f"large {len(steps)}")
            done(patient_worker, "save", workflow_id="wf", step_id=steps[-1], state_data={"x": "x" * 900_000})
            assert len(steps) < 200
        reader.execute("ROLLBACK")
    os.truncate(shm, part)
    for step in (*steps[:3], *steps[-3:]):
        done(patient_worker, "save", workflow_id="wf", step_id="small", state_data={})
        assert done(patient_worker, "cached_get", workflow_id="wf", step_id=step)["found"] is True
    assert patient_worker.finish() == []


def test_a_shm_cut_back_while_postgresql_works_does_not_end_the_worker(
    patient_worker: Worker, folder: Path, sql: Connection
) -> None:
    """A save waits for a lock in PostgreSQL, the -shm is cut to nothing meanwhile: the save is answered and cached."""
    done(patient_worker, "save", **KEY, state_data={"n": 1})
    for number in range(3):
        with sql.transaction():
            sql.execute("SELECT FROM workflow_checkpoints FOR UPDATE")
            patient_worker.send({"action": "save", **KEY, "state_data": {"n": number}})
            assert patient_worker.says_nothing(0.05)
            os.truncate(folder / f"{NAME}-shm", 0)
        assert patient_worker.read_line()["success"] is True
        assert done(patient_worker, "cached_get", **KEY)["state_data"] == {"n": number}


def test_a_changed_byte_is_a_miss_and_then_a_fresh_file(patient_worker: Worker, folder: Path) -> None:
    """One changed byte in a cached state, which SQLite itself does not notice, is never served."""
    done(patient_worker, "save", **KEY, state_data={"n": "original"})
    query(folder, "UPDATE checkpoint_cache SET state_data = CAST(replace(state_data, 'original', 'Original') AS BLOB)")
    assert cached_state(folder, **KEY) == {"n": "Original"}
    miss, hit = done(patient_worker, "cached_get", **KEY), done(patient_worker, "cached_get", **KEY)
    assert (miss["source"], hit["source"]) == ("pg", "sqlite")
    assert miss["state_data"] == hit["state_data"] == {"n": "original"}


@pytest.mark.parametrize(
    "change",
    [
        "tenant_id = 'another'",
        "revision = revision + 1",
        "id = id + 1",
        "cached_at = cached_at + 100000",
        "created_at = 0",
        "updated_at = 'yesterday'",
        "state_data = NULL",
        "state_data = 'text'",
        "state_data = 7",
        "source = ''",
        "store_id = NULL",
        "revision = x'00'",
        "tenant_id = x'ff'",
        "checksum = checksum + 1",
    ],
)
def test_an_entry_changed_in_any_field_is_not_served(place: Place, key: dict[str, str], change: str) -> None:
    """A field of an entry that is not what was written makes the whole entry a miss."""
    done(place.worker, "save", **key, state_data={"n": 1})
    query(place.folder, f"UPDATE checkpoint_cache SET {change} WHERE workflow_id = ?", key["workflow_id"])
    row = done(place.worker, "cached_get", **key)
    assert (row["source"], row["state_data"], row["tenant_id"], row["revision"]) == ("pg", {"n": 1}, "default", 1)
    assert done(place.worker, "cached_get", **key)["source"] == "sqlite"


@pytest.mark.parametrize(
    "make",
    [
        ["PRAGMA user_version = 999"],
        ["PRAGMA application_id = 1"],
        ["DROP TABLE checkpoint_cache"],
        ["ALTER TABLE checkpoint_cache RENAME COLUMN revision TO rev"],
        ["CREATE TABLE mine AS SELECT * FROM checkpoint_cache", "DROP TABLE checkpoint_cache"],
    ],
    ids=lambda statements: statements[0],
)
def test_a_file_of_another_shape_is_moved_aside_as_it_is(
    place: Place, start_offline_worker: StartWorker, key: dict[str, str], make: list[str]
) -> None:
    """A cache file of another version or of another program is moved aside unchanged, and a fresh one is made."""
    done(place.worker, "save", **key, state_data={"n": 1})
    with opened(place.folder) as connection:
        for statement in make:
            connection.execute(statement)
    before = moved_aside(place.folder)
    worker = start_offline_worker(place.settings)
    assert done(worker, "cached_get", **key)["state_data"] == {"n": 1}
    assert done(worker, "cached_get", **key)["source"] == "sqlite"
    assert moved_aside(place.folder)[-1] not in before


def test_a_corrupt_file_goes_with_its_wal(start_worker: StartWorker, folder: Path) -> None:
    """Garbage found at the start is moved aside byte for byte, its -wal with it; never repaired in place."""
    folder.mkdir(parents=True)
    for suffix in COMPANIONS:
        (folder / (NAME + suffix)).write_bytes(GARBAGE + suffix.encode())
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    assert done(worker, "save", **KEY, state_data={})["cache_written"] is True
    (aside,) = moved_aside(folder)
    assert aside.read_bytes() == GARBAGE
    assert aside.with_name(f"{aside.name}-wal").read_bytes() == GARBAGE + b"-wal"
