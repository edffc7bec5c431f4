"""A commit that the synchronous standby did not confirm is no success (contract, section 3, save)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.actions import KEY, NO_CACHE, READS, STEP, WORKFLOW, ask, save, serves, works
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

IMPATIENT = {"CHECKPOINT_CONNECT_TIMEOUT": "2", "CHECKPOINT_STATEMENT_TIMEOUT": "0.3"}
WAITING = "SELECT pid FROM pg_stat_activity WHERE application_name = 'checkpoint-manager' AND wait_event = 'SyncRep'"
KILL = f"SELECT pg_terminate_backend(pid, 5000) FROM ({WAITING}) AS waiting"


@pytest.fixture
def worker(here: Here, server: OwnServer) -> Iterator[Worker]:
    """A worker whose first save, of {"n": 1}, is confirmed; from then on the standby does not answer."""
    worker = here(**IMPATIENT)
    assert save(worker, 1)["success"]
    _lose_standby(server)
    yield worker
    server.alter(synchronous_standby_names=None)


@pytest.mark.parametrize("fields", [{}, {"expected_revision": 1}])
def test_a_save_that_no_standby_confirms_is_unknown_in_bounded_time(
    fields: dict[str, int],
    worker: Worker,
    server: OwnServer,
    bounded: Callable[..., AbstractContextManager[None]],
) -> None:
    """PG_WRITE_UNKNOWN, nothing of it in the cache, and a get tells what stands; with the standby back all is well."""
    with bounded():
        answer = save(worker, 2, **fields)
    assert answer["code"] == "PG_WRITE_UNKNOWN"
    assert "get" in answer["error"]
    got = ask(worker, "get")["data"]
    assert got["state_data"] in ({"n": 1}, {"n": 2})
    seen = ask(worker, "cached_get")["data"]
    assert (seen["source"], seen["state_data"]) == ("pg", got["state_data"])
    server.alter(synchronous_standby_names=None)
    assert save(worker, 3)["data"]["revision"] == got["revision"] + 1
    serves(worker)


def test_a_new_checkpoint_and_deletions_are_unknown_too(
    worker: Worker, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """Inserts, deletes and prunes wait for the standby as saves do; reads and the rest go on."""
    new = {"workflow_id": WORKFLOW, "step_id": "new", "state_data": {}}
    for request in (
        {"action": "save", **new},
        {"action": "save", **new, "step_id": "newer", "expected_revision": 0},
        {"action": "delete", "workflow_id": WORKFLOW, "step_id": STEP},
    ):
        with bounded():
            answer = worker.request(request)
        assert answer["code"] == "PG_WRITE_UNKNOWN", f"{request}: {answer}"
    for step in ("x", "y", "z"):
        worker.send({"action": "save", **new, "step_id": step})
    with bounded():
        assert [answer["code"] for answer in worker.read_lines(3)] == ["PG_WRITE_UNKNOWN"] * 3
    for action in READS:
        with bounded():
            works(worker, action)


def test_a_save_whose_backend_is_killed_in_the_wait_is_not_taken_for_confirmed(
    worker: Worker, server: OwnServer, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """The row is there and its write id is ours, but no standby has it: still PG_WRITE_UNKNOWN."""
    with bounded():
        worker.send({"action": "save", **KEY, "state_data": {"n": 2}})
        until(lambda: server.query(WAITING), "the commit waits for the standby")
        server.query(KILL)
        assert worker.read_line()["code"] == "PG_WRITE_UNKNOWN"


def test_a_save_whose_connection_is_cut_in_the_wait_is_not_taken_for_confirmed(
    here: Here,
    server: OwnServer,
    through: Callable[[str], Network],
    bounded: Callable[..., AbstractContextManager[None]],
) -> None:
    """The same where the network breaks: what is looked up afterwards must have reached the standby to be a success."""
    network = through(server.url)
    worker = here(DATABASE_URL=network.url, **IMPATIENT)
    assert save(worker, 1)["success"]
    _lose_standby(server)
    try:
        with bounded():
            worker.send({"action": "save", **KEY, "state_data": {"n": 2}})
            until(lambda: server.query(WAITING), "the commit waits for the standby")
            network.part()
            assert worker.read_line()["code"] == "PG_WRITE_UNKNOWN"
    finally:
        server.alter(synchronous_standby_names=None)
    network.mend()
    serves(worker)


def test_a_first_start_without_the_standby_answers_and_serves_later(
    here: Here, server: OwnServer, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """The tables cannot be made for certain: a save fails in bounded time, and works with the standby back."""
    _lose_standby(server)
    worker = here(**NO_CACHE, **IMPATIENT)
    assert ask(worker, "cache")["success"]  # started, and not connected yet
    try:
        with bounded():
            assert save(worker, 1)["code"] in {"PG_WRITE_ERROR", "PG_WRITE_UNKNOWN"}
    finally:
        server.alter(synchronous_standby_names=None)
    serves(worker)


def _lose_standby(server: OwnServer) -> None:
    server.alter(synchronous_standby_names="nobody")
    until(lambda: server.query("SHOW synchronous_standby_names") == [("nobody",)], "commits wait for a standby")
