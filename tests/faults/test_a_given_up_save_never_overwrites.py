"""A save that was given up never overwrites one that was acknowledged later (contract, section 3, save)."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.faults.actions import STEP, serves
from tests.faults.conftest import SHORT
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

ROUNDS = 50
KILLED_ROUNDS = 4
PATIENT = {"CHECKPOINT_STATEMENT_TIMEOUT": "30"}  # so that the server does not end the waiting statement by itself
SESSIONS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'checkpoint-manager'"
ACTIVE = f"{SESSIONS} AND state = 'active'"
WAITING = f"{ACTIVE} AND wait_event_type = 'Lock'"
# A statement of a state that says so waits before it looks at the row.
GATE = """
CREATE FUNCTION {schema}.gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF new.state_data ->> 'late' IS NOT NULL THEN PERFORM pg_advisory_xact_lock_shared(1); END IF;
    RETURN new;
END $$;
CREATE TRIGGER gate BEFORE INSERT ON {schema}.workflow_checkpoints FOR EACH ROW EXECUTE FUNCTION {schema}.gate()"""


def test_what_was_acknowledged_later_stays_in_fifty_rounds(
    here: Here, server: OwnServer, own_schema: str, through: Callable[[str], Network]
) -> None:
    """A save waits for a lock, its socket is cut and the server does not notice; a newer save is acknowledged; it stays."""
    network = through(server.url)
    cut, other = here(DATABASE_URL=network.url, **PATIENT), here(**PATIENT)
    serves(cut)
    for number in range(ROUNDS):
        workflow = f"wf-{number}"
        if number % len(HOLDERS) != 0:
            assert _save(other, workflow, "first")["success"]
        with HOLDERS[number % len(HOLDERS)](server, own_schema, workflow):
            cut.send(_request(workflow, "given up"))
            until(lambda: len(server.query(WAITING)) == 1, "the save waits for the lock")
            network.refusing = True
            network.part()
            assert cut.read_line()["code"] == "PG_WRITE_UNKNOWN"
            other.send(_request(workflow, "acknowledged later"))
            until(lambda: len(server.query(WAITING)) == 2, "both saves wait for the lock")
        assert other.read_line()["success"]
        until(lambda: not server.query(ACTIVE), "the save that was given up has come to its end")
        assert _state(other, workflow) == "acknowledged later", f"round {number}"
        network.mend()


def test_a_killed_workers_save_that_comes_last_does_nothing(here: Here, server: OwnServer, own_schema: str) -> None:
    """The statement of a worker that was killed goes on after the newer save was acknowledged, and refuses to act."""
    other = here(**PATIENT)
    serves(other)
    server.query(GATE.format(schema=own_schema))
    for number in range(KILLED_ROUNDS):
        workflow = f"wf-{number}"
        killed = here(**PATIENT)
        if number % 2:
            assert _save(other, workflow, "first")["success"]
        with psycopg.connect(server.url) as holder:
            holder.execute("SELECT pg_advisory_xact_lock(1)")
            killed.send(_request(workflow, "given up", late=True))
            until(lambda: len(server.query(WAITING)) == 1, "the save waits")
            killed.kill()
            revision = _save(other, workflow, "acknowledged later")["data"]["revision"]
            assert revision == 1 + number % 2
        until(lambda: not server.query(ACTIVE), "the save of the killed worker has come to its end")
        assert _state(other, workflow) == "acknowledged later", f"round {number}"


@pytest.mark.parametrize("how", ["killed", "given up"])
def test_a_save_that_arrives_late_does_nothing(
    how: str, here: Here, server: OwnServer, through: Callable[[str], Network]
) -> None:
    """A network delivers the save of a worker that is gone, or has given up, after a newer one was acknowledged."""
    network = through(server.url)
    slow, other = here(DATABASE_URL=network.url, **SHORT), here()
    assert _save(slow, "wf", "first")["success"]
    with network.late():
        slow.send(_request("wf", "given up"))
        if how == "killed":
            until(lambda: network.held, "the save is under way")
            slow.kill()
        else:
            network.refusing = True
            assert slow.read_line()["code"] == "PG_WRITE_UNKNOWN"
        assert _save(other, "wf", "acknowledged later")["data"]["revision"] == 2
        sessions = len(server.query(SESSIONS))
    until(lambda: len(server.query(SESSIONS)) < sessions, "the late save has come to its end")
    assert _state(other, "wf") == "acknowledged later"


def test_a_save_whose_session_stood_still_does_nothing_when_it_goes_on(here: Here, server: OwnServer) -> None:
    """One backend is frozen, the server is not: the save is unknown in bounded time, and nothing when it is thawed."""
    slow, other = here(**SHORT), here()
    assert _save(slow, "wf", "first")["success"]
    until(lambda: len(server.query(SESSIONS)) == 1, "there is no session but that of the worker")
    ((pid,),) = server.query(SESSIONS)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert _save(slow, "wf", "given up")["code"] == "PG_WRITE_UNKNOWN"
        assert _save(other, "wf", "acknowledged later")["data"]["revision"] == 2
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: (pid,) not in server.query(SESSIONS), "the thawed session has come to its end")
    assert _state(other, "wf") == "acknowledged later"
    assert _save(slow, "wf", "again")["data"]["revision"] == 3


def test_a_delete_that_was_given_up_does_not_remove_what_was_saved_later(
    here: Here, server: OwnServer, own_schema: str
) -> None:
    """A delete of a killed worker that goes on after a newer save was acknowledged removes nothing."""
    other = here(**PATIENT)
    serves(other)
    gate = GATE.format(schema=own_schema).replace("BEFORE INSERT", "BEFORE DELETE").replace("FOR EACH ROW", "")
    server.query(gate.replace("IF new.state_data ->> 'late' IS NOT NULL THEN", "").replace("END IF;", ""))
    for what in ({"step_id": STEP}, {"all_steps": True}):
        assert _save(other, "wf", "first")["success"]
        killed = here(**PATIENT)
        with psycopg.connect(server.url) as holder:
            holder.execute("SELECT pg_advisory_xact_lock(1)")
            killed.send({"action": "delete", "workflow_id": "wf", **what})
            until(lambda: len(server.query(WAITING)) == 1, "the delete waits")
            killed.kill()
            assert _save(other, "wf", "acknowledged later")["success"]
        until(lambda: not server.query(ACTIVE), "the delete of the killed worker has come to its end")
        assert _state(other, "wf") == "acknowledged later"


@contextmanager
def _uncommitted_row(server: OwnServer, schema: str, workflow: str) -> Iterator[None]:
    """Both saves wait for the outcome of an insert; which of them goes on first is open."""
    with psycopg.connect(server.url) as holder:
        holder.execute(
            f"INSERT INTO {schema}.workflow_checkpoints (workflow_id, step_id, state_data) VALUES (%s, %s, '{{}}')",
            (workflow, STEP),
        )
        yield


@contextmanager
def _withdrawn_row(server: OwnServer, schema: str, workflow: str) -> Iterator[None]:
    """The same, and the insert is rolled back."""
    with psycopg.connect(server.url) as holder:
        holder.execute(f"DELETE FROM {schema}.workflow_checkpoints WHERE workflow_id = %s", (workflow,))
        yield


@contextmanager
def _locked_row(server: OwnServer, schema: str, workflow: str) -> Iterator[None]:
    with psycopg.connect(server.url) as holder:
        holder.execute(f"SELECT FROM {schema}.workflow_checkpoints WHERE workflow_id = %s FOR UPDATE", (workflow,))
        yield


@contextmanager
def _locked_table(server: OwnServer, schema: str, workflow: str) -> Iterator[None]:
    with psycopg.connect(server.url) as holder:
        holder.execute(f"LOCK TABLE {schema}.workflow_checkpoints IN EXCLUSIVE MODE")
        yield


HOLDERS = (_uncommitted_row, _withdrawn_row, _locked_row, _locked_table)


def _request(workflow: str, who: str, **more: bool) -> dict[str, Any]:
    return {"action": "save", "workflow_id": workflow, "step_id": STEP, "state_data": {"who": who, **more}}


def _save(worker: Worker, workflow: str, who: str) -> dict[str, Any]:
    return worker.request(_request(workflow, who))


def _state(worker: Worker, workflow: str) -> object:
    got = worker.request({"action": "get", "workflow_id": workflow, "step_id": STEP})
    return got["data"]["state_data"]["who"]
