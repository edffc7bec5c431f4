"""What PostgreSQL rolled back to resolve a conflict is sent again; what it timed out is told (contract, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.faults.actions import KEY, ask, fails, save, serves
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer

REPEATS = 3
# Fails the first so many statements that change a row; a sequence is what a roll-back leaves alone.
FAILS_AT_FIRST = """
CREATE SEQUENCE {schema}.tries;
CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF nextval('{schema}.tries') <= {times} THEN RAISE EXCEPTION 'made by the test' USING ERRCODE = '{state}'; END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER fails AFTER INSERT OR UPDATE OR DELETE ON {schema}.workflow_checkpoints
FOR EACH ROW EXECUTE FUNCTION {schema}.fail()"""
WAITING = "SELECT pid FROM pg_stat_activity WHERE application_name = 'checkpoint-manager' AND wait_event_type = 'Lock'"


@pytest.mark.parametrize("state", ["40001", "40P01"], ids=["serialization failure", "deadlock"])
def test_a_write_that_was_rolled_back_is_repeated_three_times(
    state: str, here: Here, server: OwnServer, own_schema: str
) -> None:
    """Three roll-backs go unnoticed and the write is done once; after a fourth: certainly nothing written, and told."""
    worker = here()
    assert save(worker, 1)["success"]
    server.query(FAILS_AT_FIRST.format(schema=own_schema, times=REPEATS, state=state))
    tries = f"{own_schema}.tries"
    assert save(worker, 2)["data"]["revision"] == 2
    assert server.query(f"SELECT last_value FROM {tries}") == [(REPEATS + 1,)]
    server.query(f"ALTER SEQUENCE {tries} RESTART")
    assert ask(worker, "delete")["data"]["deleted_count"] == 1
    server.query(f"ALTER SEQUENCE {tries} RESTART")
    assert save(worker, 3, expected_revision=0)["data"]["revision"] == 1
    server.query(f"ALTER SEQUENCE {tries} MINVALUE 0 RESTART WITH 0")
    refused = save(worker, 4)
    assert refused["code"] == "PG_WRITE_ERROR"
    assert state in refused["error"]
    got = worker.request({"action": "get", **KEY})["data"]
    assert (got["state_data"], got["revision"]) == ({"n": 3}, 1)
    serves(worker)


def test_a_real_deadlock_costs_the_worker_nothing(here: Here, server: OwnServer, own_schema: str) -> None:
    """PostgreSQL ends one side of a circle of waits; when it is the worker's, the worker sends it again."""
    worker = here(CHECKPOINT_STATEMENT_TIMEOUT="20")
    assert save(worker, 1)["success"]
    server.query(
        f"""CREATE FUNCTION {own_schema}.lock() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END $$;
            CREATE TRIGGER lock AFTER UPDATE ON {own_schema}.workflow_checkpoints
            FOR EACH ROW EXECUTE FUNCTION {own_schema}.lock()"""
    )
    with psycopg.connect(server.url) as other:
        other.execute("SET deadlock_timeout = '1h'")  # so that it is the worker's side that is ended
        other.execute("SELECT pg_advisory_xact_lock(7)")
        worker.send({"action": "save", **KEY, "state_data": {"n": 2}})
        until(lambda: server.query(WAITING), "the save waits for the lock")
        other.execute(f"UPDATE {own_schema}.workflow_checkpoints SET kind = kind WHERE workflow_id = 'wf'")
    answer = worker.read_line()
    assert answer["success"], answer
    assert worker.request({"action": "get", **KEY})["data"]["state_data"] == {"n": 2}


def test_a_statement_that_waits_too_long_is_told_and_nothing_is_written(
    here: Here, server: OwnServer, own_schema: str, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """Behind a lock that stays, every action fails by its own code in bounded time and names the setting."""
    worker = here(CHECKPOINT_STATEMENT_TIMEOUT="0.2")
    assert save(worker, 1)["success"]
    with psycopg.connect(server.url) as other:
        other.execute(f"LOCK TABLE {own_schema}.workflow_checkpoints")
        for action in (
            "save",
            "get",
            "list",
            "rebuild",
            "verify",
            "request_approval",
            "pending",
            "approve",
            "prune",
            "delete",
        ):
            with bounded():
                answer = fails(worker, action)
            assert "CHECKPOINT_STATEMENT_TIMEOUT" in answer["error"]
    got = worker.request({"action": "get", **KEY})["data"]
    assert (got["state_data"], got["revision"]) == ({"n": 1}, 1)
    serves(worker)
