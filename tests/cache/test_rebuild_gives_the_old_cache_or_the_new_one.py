"""Rebuild: the cache made anew from PostgreSQL, all of it or nothing (contract, section 3, rebuild)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from tests.support.asking import done, refused
from tests.support.cache_file import (
    COMPANIONS,
    NAME,
    cached_state,
    overwrite,
    query,
    until_cached,
    write_locked,
)
from tests.support.golden import delete_cache
from tests.support.place import NO_HURRY
from tests.support.process import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.gate import Gate
    from tests.support.place import Place
    from tests.support.worker import Worker

INSERT = """
    INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data, updated_at)
    SELECT %(workflow)s, 'step ' || n, %(tenant)s, json_build_object('n', n), now() - n * interval '1 s'
    FROM generate_series(1, %(count)s) AS n
"""
WF = "wf"


def insert(sql: Connection, count: int, workflow: str = WF, tenant: str = "default") -> None:
    """Rows of another program; step 1 is the newest."""
    sql.execute(INSERT, {"workflow": workflow, "tenant": tenant, "count": count})


def rebuild_was_read(sql: Connection) -> bool:
    """Whether a backend has taken a rebuild's statement."""
    statement = """
        SELECT count(*) FROM pg_stat_activity
        WHERE query LIKE '%' || current_schema() || '%ORDER BY updated_at DESC%' AND pid <> pg_backend_pid()
    """
    return sql.execute(statement).fetchone() != (0,)


def hits(worker: Worker, workflow: str, count: int) -> set[int]:
    """Which of the inserted steps the cache serves."""
    steps = range(1, count + 1)
    rows = {n: done(worker, "cached_get", workflow_id=workflow, step_id=f"step {n}") for n in steps}
    return {number for number, row in rows.items() if row["source"] == "sqlite"}


def cached_steps(folder: Path, workflow: str) -> set[str]:
    """The steps whose states are in the file."""
    statement = "SELECT step_id FROM checkpoint_cache WHERE workflow_id = ? AND state_data IS NOT NULL"
    return {step for (step,) in query(folder, statement, workflow)}


def test_a_rebuild_fills_the_cache_with_what_postgresql_has(place: Place, workflow: str, tenant: str) -> None:
    """Rows the cache never saw come in, entries that PostgreSQL does not have go out, verify is consistent."""
    insert(place.sql, 20, workflow, tenant)
    for number in range(3):
        done(place.worker, "cache", workflow_id=workflow, step_id=f"gone {number}", tenant_id=tenant, state_data={})
    answer = done(place.worker, "rebuild", tenant_id=tenant)
    assert answer.pop("elapsed_sec") >= 0
    assert answer == {
        "tenant_id": tenant,
        "workflow_id": None,
        "pg_read_count": 20,
        "deleted_before": 3,
        "rebuilt_count": 20,
        "truncated": False,
    }
    after = done(place.worker, "verify", tenant_id=tenant)
    assert (after["consistent"], after["pg_count"], after["sqlite_count"]) == (True, 20, 20)
    assert hits(place.worker, workflow, 20) == set(range(1, 21))
    assert done(place.worker, "rebuild", tenant_id=tenant)["deleted_before"] == 20


def test_an_empty_tenant_rebuilds_to_nothing(place: Place, tenant: str) -> None:
    """Nothing in PostgreSQL is a success with nothing."""
    answer = done(place.worker, "rebuild", tenant_id=tenant)
    assert (answer["pg_read_count"], answer["deleted_before"], answer["rebuilt_count"]) == (0, 0, 0)


def test_a_rebuild_keeps_to_its_scope(place: Place, workflow: str, tenant: str) -> None:
    """Of one workflow, of one tenant: everything else in the cache stays, what is wrong with it too."""
    insert(place.sql, 3, workflow, tenant)
    insert(place.sql, 3, f"{workflow} b", tenant)
    insert(place.sql, 3, f"{workflow} c", f"{tenant} other")
    for of, owner in ((workflow, tenant), (f"{workflow} b", tenant), (f"{workflow} c", f"{tenant} other")):
        done(place.worker, "cache", workflow_id=of, step_id="extra", tenant_id=owner, state_data={})
    answer = done(place.worker, "rebuild", tenant_id=tenant, workflow_id=workflow)
    assert (answer["pg_read_count"], answer["deleted_before"], answer["workflow_id"]) == (3, 1, workflow)
    assert cached_steps(place.folder, workflow) == {"step 1", "step 2", "step 3"}
    assert cached_steps(place.folder, f"{workflow} b") == {"extra"}
    answer = done(place.worker, "rebuild", tenant_id=tenant, workflow_id="")
    assert (answer["pg_read_count"], answer["deleted_before"], answer["workflow_id"]) == (6, 4, None)
    assert cached_steps(place.folder, f"{workflow} c") == {"extra"}


def test_without_a_tenant_it_is_the_default_one(start_worker: StartWorker, sql: Connection) -> None:
    """tenant_id absent or empty rebuilds the default tenant, not all."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(worker, "get", workflow_id=WF, step_id="s")
    insert(sql, 2)
    insert(sql, 3, "other", "other")
    for scope in ({}, {"tenant_id": ""}):
        assert done(worker, "rebuild", **scope)["pg_read_count"] == 2


def test_the_newest_come_up_to_the_limit(start_worker: StartWorker, sql: Connection) -> None:
    """CHECKPOINT_REBUILD_LIMIT rows, newest first; truncated tells when there were more, and only then."""
    worker = start_worker({"CHECKPOINT_REBUILD_LIMIT": "7", "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(worker, "get", workflow_id=WF, step_id="s")
    insert(sql, 20)
    answer = done(worker, "rebuild")
    assert (answer["pg_read_count"], answer["rebuilt_count"], answer["truncated"]) == (7, 7, True)
    assert hits(worker, WF, 20) == set(range(1, 8))
    sql.execute("DELETE FROM workflow_checkpoints WHERE step_id > 'step 7' OR length(step_id) > 6")
    answer = done(worker, "rebuild")
    assert (answer["pg_read_count"], answer["rebuilt_count"], answer["truncated"]) == (7, 7, False)
    assert done(worker, "verify")["consistent"] is True


def test_a_corrupt_or_missing_file_is_replaced(place: Place, workflow: str) -> None:
    """Garbage where the cache was, or nothing: rebuild makes it anew, and verify is consistent."""
    insert(place.sql, 5, workflow)
    for suffix in (*COMPANIONS, None):
        if suffix is None:
            delete_cache(place.folder)
        else:
            overwrite(place.folder / (NAME + suffix))
        assert done(place.worker, "rebuild", workflow_id=workflow)["rebuilt_count"] == 5
        after = done(place.worker, "verify", workflow_id=workflow)
        assert (after["consistent"], after["sqlite_count"]) == (True, 5)


def test_a_server_that_does_not_answer_leaves_the_old_cache(
    start_worker: StartWorker, sql: Connection, folder: Path
) -> None:
    """The reading fails before its first row: REBUILD_FAILED, and every entry is where it was."""
    worker = start_worker({"CHECKPOINT_STATEMENT_TIMEOUT": "0.3"})
    done(worker, "save", workflow_id=WF, step_id="step 1", state_data={"n": "old"})
    done(worker, "cache", workflow_id=WF, step_id="lossy", state_data={})
    with sql.transaction():
        sql.execute("LOCK TABLE workflow_checkpoints IN ACCESS EXCLUSIVE MODE")
        assert refused(worker, "rebuild")[0] == "REBUILD_FAILED"
    assert cached_steps(folder, WF) == {"step 1", "lossy"}
    assert done(worker, "cached_get", workflow_id=WF, step_id="step 1")["source"] == "sqlite"
    assert done(worker, "rebuild")["rebuilt_count"] == 1


def test_a_connection_that_breaks_amid_the_rows_leaves_the_old_cache(
    start_worker: StartWorker, sql: Connection, folder: Path, gate: Gate
) -> None:
    """Half of the rows have come, then the connection breaks, and the next one too: REBUILD_FAILED, nothing changed."""
    worker = start_worker({"DATABASE_URL": gate.url})
    done(worker, "save", workflow_id=WF, step_id="old", state_data={"n": "old"})
    sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)"
        " SELECT 'wf', 'step ' || n, json_build_object('x', repeat(md5(n::text), 5000)) FROM generate_series(1, 30) AS n"
    )
    done(worker, "cache", workflow_id=WF, step_id="lossy", state_data={})
    with gate.cut_after(2_000_000, times=2):
        assert refused(worker, "rebuild")[0] == "REBUILD_FAILED"
    assert cached_steps(folder, WF) == {"old", "lossy"}
    assert done(worker, "cached_get", workflow_id=WF, step_id="old")["source"] == "sqlite"
    answer = done(worker, "rebuild")
    assert (answer["rebuilt_count"], answer["pg_read_count"], answer["deleted_before"]) == (31, 31, 2)
    assert done(worker, "verify")["consistent"] is True


def test_one_broken_connection_is_made_good(start_worker: StartWorker, sql: Connection, gate: Gate) -> None:
    """The connection breaks amid the rows once: read again from the start, and complete."""
    worker = start_worker({"DATABASE_URL": gate.url})
    done(worker, "get", workflow_id=WF, step_id="s")
    sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)"
        " SELECT 'wf', 'step ' || n, json_build_object('x', repeat(md5(n::text), 5000)) FROM generate_series(1, 30) AS n"
    )
    with gate.cut_after(2_000_000, times=1):
        answer = done(worker, "rebuild")
    assert (answer["rebuilt_count"], answer["pg_read_count"]) == (30, 30)
    assert done(worker, "verify")["consistent"] is True


def test_readers_see_the_old_cache_until_the_new_one_is_there(
    start_worker: StartWorker, sql: Connection, gate: Gate, folder: Path
) -> None:
    """While a rebuild waits for PostgreSQL, hits of other processes go on as before; then all is new at once."""
    settings = {"DATABASE_URL": gate.url, "CHECKPOINT_CACHE_WAIT_MS": "50"}
    worker, reader = start_worker(settings), start_worker(settings)
    done(worker, "save", workflow_id=WF, step_id="step 1", state_data={"n": "old"})
    done(reader, "cached_get", workflow_id=WF, step_id="step 1")
    sql.execute('UPDATE workflow_checkpoints SET state_data = \'{"n": "new"}\', revision = 9')
    with gate.held():
        worker.send({"action": "rebuild"})
        assert worker.says_nothing(0.2)
        for _ in range(5):
            row = done(reader, "cached_get", workflow_id=WF, step_id="step 1")
            assert (row["source"], row["state_data"]) == ("sqlite", {"n": "old"})
    assert worker.read_line()["data"]["rebuilt_count"] == 1
    row = done(reader, "cached_get", workflow_id=WF, step_id="step 1")
    assert (row["source"], row["state_data"]) == ("sqlite", {"n": "new"})


def test_what_is_written_after_the_reading_began_stays(
    start_worker: StartWorker, sql: Connection, gate: Gate, folder: Path
) -> None:
    """Saved and deleted by another process while the rebuild had read but not written: in the end the cache has the newer."""
    settings = {"DATABASE_URL": gate.url, "CHECKPOINT_CACHE_WAIT_MS": "50"}
    rebuilder, other = start_worker(settings), start_worker(settings)
    for step in ("saved", "deleted", "quiet"):
        done(rebuilder, "save", workflow_id=WF, step_id=step, state_data={"n": "old"})
    with gate.held():
        rebuilder.send({"action": "rebuild"})
        until(lambda: rebuild_was_read(sql), "PostgreSQL has answered the rebuild")
        done(other, "save", workflow_id=WF, step_id="saved", state_data={"n": "new"})
        done(other, "save", workflow_id=WF, step_id="fresh", state_data={"n": "new"})
        done(other, "delete", workflow_id=WF, step_id="deleted")
        lossy = done(other, "cache", workflow_id=WF, step_id="lossy", state_data={"n": "lossy"})["written"]
    assert rebuilder.read_line()["data"]["rebuilt_count"] >= 2
    until_cached(folder, WF, "saved", {"n": "new"})
    until_cached(folder, WF, "fresh", {"n": "new"})
    until_cached(folder, WF, "deleted", None)
    assert (cached_state(folder, WF, "lossy") is not None) is lossy
    for worker in (rebuilder, other):
        assert done(worker, "cached_get", workflow_id=WF, step_id="deleted")["found"] is False
        assert done(worker, "cached_get", workflow_id=WF, step_id="saved")["state_data"] == {"n": "new"}
    if not lossy:
        assert done(rebuilder, "verify")["consistent"] is True


def test_a_waiting_save_survives_a_rebuild(worker: Worker, folder: Path) -> None:
    """A save whose cache write waits for a lock when the rebuild begins is in the cache afterwards."""
    done(worker, "save", workflow_id=WF, step_id="s", state_data={"n": 1})
    with write_locked(folder):
        done(worker, "save", workflow_id=WF, step_id="s", state_data={"n": 2})
        worker.send({"action": "rebuild"})
        assert worker.says_nothing(0.2)
    assert worker.read_line()["data"]["rebuilt_count"] == 1
    until_cached(folder, WF, "s", {"n": 2})
    assert done(worker, "verify")["consistent"] is True


def test_rebuilds_and_saves_at_once_end_consistent(start_worker: StartWorker) -> None:
    """One worker rebuilds over and over while another saves: every answer is a success, the end is consistent."""
    rebuilder, saver = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}), start_worker()
    done(saver, "save", workflow_id=WF, step_id="step 0", state_data={"n": 0})
    over = threading.Event()
    answers: list[dict[str, Any]] = []

    def rebuild() -> None:
        while not over.is_set():
            answers.append(rebuilder.request({"action": "rebuild"}))

    thread = threading.Thread(target=rebuild)
    thread.start()
    try:
        for number in range(200):
            step = f"step {number % 10}"
            done(saver, "save", workflow_id=WF, step_id=step, state_data={"n": number})
            assert done(saver, "cached_get", workflow_id=WF, step_id=step)["state_data"] == {"n": number}
    finally:
        over.set()
        thread.join()
    assert answers
    assert all(answer["success"] for answer in answers)
    until(lambda: done(saver, "save", workflow_id="x", step_id="x", state_data={})["cache_written"], "nothing waits")
    assert done(saver, "verify")["consistent"] is True
