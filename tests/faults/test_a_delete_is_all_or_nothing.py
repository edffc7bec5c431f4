"""A delete of several rows is one transaction: what it says of them holds for all (contract, section 3, delete)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg

from tests.faults.actions import WORKFLOW
from tests.faults.conftest import SHORT
from tests.support.process import until

if TYPE_CHECKING:
    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

STEPS = [f"step {number}" for number in range(3)]
ALL_STEPS = {"action": "delete", "workflow_id": WORKFLOW, "all_steps": True}
DELETE_WAITS = """
    SELECT FROM pg_stat_activity
    WHERE application_name = 'checkpoint-manager' AND state = 'active' AND wait_event_type = 'Lock'"""
TABLE_LOCK_WAITS = "SELECT FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND locktype = 'relation' AND NOT granted"


def _with_rows(here: Here) -> Worker:
    """A worker that has saved every step."""
    worker = here(**SHORT)
    for step in STEPS:
        worker.ask({"action": "save", "workflow_id": WORKFLOW, "step_id": step, "state_data": {"of": step}})
    return worker


def _stands(worker: Worker, step: str) -> None:
    """Holds a step to being there as it was saved, in PostgreSQL and for who asks the cache."""
    for action in ("get", "cached_get"):
        row = worker.ask({"action": action, "workflow_id": WORKFLOW, "step_id": step})
        assert row["state_data"] == {"of": step}, action


def _count(server: OwnServer, schema: str) -> object:
    ((count,),) = server.query(f"SELECT count(*) FROM {schema}.workflow_checkpoints WHERE workflow_id = '{WORKFLOW}'")
    return count


def test_a_failure_after_the_first_rows_leaves_every_row(here: Here, server: OwnServer, own_schema: str) -> None:
    """A row from a clock that was ahead is deleted last and is locked: PG_WRITE_ERROR, and the others still stand."""
    worker = _with_rows(here)
    ahead = f"UPDATE {own_schema}.workflow_checkpoints SET updated_at = now() + interval '1 day' WHERE step_id = %s"
    with psycopg.connect(server.url) as holder:
        holder.execute(ahead.encode(), (STEPS[-1],))
        holder.commit()
        holder.execute(f"SELECT FROM {own_schema}.workflow_checkpoints WHERE step_id = %s FOR UPDATE", (STEPS[-1],))
        assert worker.request(ALL_STEPS)["code"] == "PG_WRITE_ERROR"
    assert _count(server, own_schema) == len(STEPS)
    for step in STEPS:
        _stands(worker, step)
    assert worker.ask(ALL_STEPS)["deleted_count"] == len(STEPS)
    assert _count(server, own_schema) == 0


def test_a_table_lock_that_queues_up_behind_it_does_not_part_it(here: Here, server: OwnServer, own_schema: str) -> None:
    """While it waits for a row another session asks for the whole table: it is done, or an error and nothing is gone."""
    worker = _with_rows(here)
    table = f"{own_schema}.workflow_checkpoints"
    with psycopg.connect(server.url) as holder, psycopg.connect(server.url) as locker:
        holder.execute(f"SELECT FROM {table} WHERE step_id = %s FOR UPDATE", (STEPS[-1],))
        worker.send(ALL_STEPS)
        until(lambda: server.query(DELETE_WAITS), "the delete waits for the row")
        lock = threading.Thread(target=locker.execute, args=(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",))
        lock.start()
        until(lambda: server.query(TABLE_LOCK_WAITS), "the lock of the table waits")
        holder.commit()
        answer = worker.read_line()
        lock.join()
        locker.rollback()
    left = 0 if answer["success"] else len(STEPS)
    assert _count(server, own_schema) == left, answer
    assert answer["code"] in {None, "PG_WRITE_ERROR"}
