"""A connection that was lost between two requests costs nobody anything (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from checkpoint import actions
from tests.faults.actions import EVERY_ACTION, KEY, NO_CACHE, STEP, WORKFLOW, ask, save, serves, works
from tests.support.process import until

if TYPE_CHECKING:
    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

OURS = "application_name = 'checkpoint-manager'"
KILL = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE {OURS}"
SESSIONS = f"SELECT pid FROM pg_stat_activity WHERE {OURS}"
WAITING = f"{SESSIONS} AND wait_event_type = 'Lock'"


def test_every_action_is_tried_here() -> None:
    """What is shown of all actions leaves none out."""
    assert set(EVERY_ACTION) == set(actions.NAMES)


def test_a_backend_killed_between_two_requests_is_not_noticed_by_the_caller(here: Here, server: OwnServer) -> None:
    """Each action succeeds straight after its backend was killed; no outcome is unknown, since nothing had been sent."""
    worker = here(**NO_CACHE)
    assert save(worker, 0)["success"]
    for action in EVERY_ACTION:
        server.query(KILL)
        works(worker, action)
    serves(worker)


def test_a_session_that_the_server_ended_for_idleness_is_not_noticed_by_the_caller(
    here: Here, server: OwnServer
) -> None:
    """The same where the server has an idle_session_timeout."""
    server.alter(idle_session_timeout="300ms")
    try:
        worker = here(**NO_CACHE)
        assert save(worker, 0)["success"]
        for action in ("get", "list", "cached_get", "rebuild", "save", "approve", "prune", "delete"):
            until(lambda: not server.query(SESSIONS), "the server has ended the idle session")
            works(worker, action)
        serves(worker)
    finally:
        server.alter(idle_session_timeout=None)


def test_a_store_that_was_dropped_and_a_database_made_anew_serve_at_the_next_request(
    here: Here, server: OwnServer, own_schema: str
) -> None:
    """Each action works although the tables went before it: they are made again, and nothing old is served."""
    worker = here(**NO_CACHE)
    for action in EVERY_ACTION:
        assert save(worker, 7)["success"]
        server.query(f"DROP SCHEMA {own_schema} CASCADE")
        answer = works(worker, action)
        if action in {"get", "cached_get"}:
            assert not answer["data"]["found"]
    serves(worker)


def test_a_column_whose_type_was_changed_is_read_at_the_next_request(
    here: Here, server: OwnServer, own_schema: str
) -> None:
    """The plan that the server keeps for a statement does not fit any more: the caller does not notice."""
    worker = here()
    assert ask(worker, "save")["success"]
    for _ in range(5):  # so that the statement is prepared
        assert ask(worker, "get")["success"]
    server.query(f"ALTER TABLE {own_schema}.workflow_checkpoints ALTER COLUMN revision TYPE numeric")
    server.query(f"ALTER TABLE {own_schema}.workflow_checkpoints ALTER COLUMN revision TYPE bigint")
    server.query(f"ALTER TABLE {own_schema}.workflow_checkpoints ALTER COLUMN state_data TYPE json")
    assert ask(worker, "get")["data"]["state_data"] == {"n": 1}


def test_a_backend_killed_during_a_statement_is_replaced(here: Here, server: OwnServer, own_schema: str) -> None:
    """A statement whose backend is killed while it waits is looked up, sent again, and done exactly once."""
    worker = here(CHECKPOINT_STATEMENT_TIMEOUT="20")
    assert save(worker, 0)["data"]["revision"] == 1
    for action in ("get", "list", "workflows", "rebuild", "verify", "save"):
        answer = _killed_while_it_waits(worker, server, own_schema, {"action": action, **EVERY_ACTION[action].request})
        assert answer["success"], f"{action}: {answer}"
    assert answer["data"]["revision"] == 2
    got = worker.request({"action": "get", **KEY})["data"]
    assert (got["state_data"], got["revision"]) == ({"n": 1}, 2)


def test_a_delete_whose_backend_is_killed_is_not_said_to_have_failed(
    here: Here, server: OwnServer, own_schema: str
) -> None:
    """Killed while it waits, it is done again or told as unknown; never as certainly not done while it may be."""
    worker = here(CHECKPOINT_STATEMENT_TIMEOUT="20")
    for what in ({"step_id": STEP}, {"all_steps": True}):
        assert save(worker, 0)["success"]
        request = {"action": "delete", "workflow_id": WORKFLOW, **what}
        answer = _killed_while_it_waits(worker, server, own_schema, request)
        assert answer["success"] or answer["code"] == "PG_WRITE_UNKNOWN", answer
        if answer["success"]:
            assert not worker.request({"action": "get", **KEY})["data"]["found"]
    serves(worker)


def _killed_while_it_waits(worker: Worker, server: OwnServer, schema: str, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request whose statement waits for a lock when its backend is killed."""
    with psycopg.connect(server.url) as other:
        other.execute(f"LOCK TABLE {schema}.workflow_checkpoints")
        worker.send(request)
        until(lambda: server.query(WAITING), "the statement waits")
        server.query(KILL)
    return worker.read_line()
