"""A pooler that gives every statement another session changes nothing for the caller (contract, section 3)."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.faults.actions import EVERY_ACTION, KEY, NO_CACHE, ask, fails, save, serves, works
from tests.support import pooler as support
from tests.support.pooler import Pooler
from tests.support.process import until
from tests.support.switching import Switching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer, OwnServers
    from tests.support.worker import Worker

WORKERS = 5
CONNECTIONS = 2
SAVES = 20
WAITING = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
KILL = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'checkpoint-manager'"
SET_BY_US = ("statement_timeout", "idle_in_transaction_session_timeout", "default_transaction_isolation", "search_path")


@pytest.fixture(scope="module")
def pooler(own_servers: OwnServers, server: OwnServer) -> Iterator[Pooler]:
    """PgBouncer in transaction mode with fewer connections than there are workers."""
    if not support.is_installed():
        pytest.skip("PgBouncer is not installed (Debian, Ubuntu: apt-get install pgbouncer)")
    pooler = Pooler(own_servers, server, CONNECTIONS)
    yield pooler
    pooler.kill()


@pytest.fixture
def start(here: Here, pooler: Pooler) -> Here:
    """Starts workers behind the pooler."""

    def started(**env: str) -> Worker:
        return here(**{"DATABASE_URL": pooler.url, **env})

    return started


def test_more_workers_than_connections_save_and_read_at_once(start: Here, pooler: Pooler) -> None:
    """Every save of every worker is there, in order and exactly once, with statements sent often enough to be prepared."""
    workers = [start(**NO_CACHE) for _ in range(WORKERS)]
    failures: list[object] = []

    def work(number: int, worker: Worker) -> None:
        for n in range(1, SAVES + 1):
            mine = {"workflow_id": f"wf-{number}", "step_id": "s"}
            saved = worker.request({"action": "save", **mine, "state_data": {"n": n}})
            got = worker.request({"action": "get", **mine})
            if not (saved["success"] and saved["data"]["revision"] == n and got["data"]["state_data"] == {"n": n}):
                failures.append((saved, got))

    threads = [threading.Thread(target=work, args=item) for item in enumerate(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    for action in EVERY_ACTION:
        works(workers[0], action)
    with psycopg.connect(pooler.url) as other:
        changed = other.execute("SELECT name FROM pg_settings WHERE source = 'session'").fetchall()
    assert not {name for (name,) in changed} & set(SET_BY_US), "a session that others share was left changed"


def test_first_starts_behind_a_pooler_leave_nothing_in_its_sessions(
    start: Here, pooler: Pooler, server: OwnServer, own_schema: str
) -> None:
    """Making the tables through sessions that are shared, one process after another and many at once, fails nobody."""
    for turn in range(3):
        for process in range(2):
            worker = start(CHECKPOINT_SCHEMA=f"{own_schema}_{turn}")
            assert save(worker, process)["success"]
            worker.kill()
    for turn in range(2):
        together = [start(CHECKPOINT_SCHEMA=f"{own_schema}_together_{turn}") for _ in range(WORKERS)]
        for number, worker in enumerate(together):
            worker.send({"action": "save", "workflow_id": f"wf-{number}", "step_id": "s", "state_data": {}})
        for worker in together:
            answer = worker.read_line()
            assert answer["success"], answer
            worker.kill()
    prepared = set()
    for _ in range(2 * CONNECTIONS):
        with psycopg.connect(pooler.url) as other:
            prepared |= set(other.execute("SELECT name FROM pg_prepared_statements").fetchall())
    assert prepared == set()


def test_lost_sessions_and_a_lost_pooler_are_replaced(start: Here, pooler: Pooler, server: OwnServer) -> None:
    """The server ends the pooled sessions, the pooler is killed and started again: the same worker serves."""
    worker = start(**NO_CACHE)
    serves(worker)
    server.query(KILL)
    serves(worker)
    pooler.kill()
    assert save(worker, 1)["code"] in {"PG_WRITE_ERROR", "PG_WRITE_UNKNOWN"}
    fails(worker, "get")
    fails(worker, "save")
    pooler.start()
    serves(worker)


def test_a_lock_that_stays_is_waited_for_in_bounded_time(
    start: Here, server: OwnServer, own_schema: str, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """No session setting bounds a statement here, the client does: it is cancelled, and certainly nothing is written."""
    worker = start(CHECKPOINT_STATEMENT_TIMEOUT="0.3")
    assert save(worker, 1)["success"]
    with psycopg.connect(server.url) as other:
        other.execute(f"LOCK TABLE {own_schema}.workflow_checkpoints")
        with bounded():
            assert ask(worker, "get")["code"] == "PG_READ_ERROR"
        with bounded():
            assert save(worker, 2)["code"] in {"PG_WRITE_ERROR", "PG_WRITE_UNKNOWN"}
    serves(worker)


@pytest.mark.parametrize("expected", [{}, {"expected_revision": 1}], ids=["save", "compare and set"])
def test_a_cut_save_that_is_still_under_way_behind_the_pooler_is_no_conflict(
    expected: dict[str, int],
    start: Here,
    pooler: Pooler,
    server: OwnServer,
    own_schema: str,
    through: Callable[[str], Network],
) -> None:
    """The session of a cut save cannot be ended there and may still act: a success or unknown, never a false conflict."""
    network = through(pooler.url)
    worker = start(DATABASE_URL=network.url, CHECKPOINT_STATEMENT_TIMEOUT="20")
    assert save(worker, 1)["success"]
    with psycopg.connect(server.url) as holder:
        holder.execute(f"SELECT FROM {own_schema}.workflow_checkpoints FOR UPDATE")
        worker.send({"action": "save", **KEY, "state_data": {"n": 2}, **expected})
        until(lambda: len(server.query(WAITING)) == 1, "the save waits")
        network.part()
        until(lambda: len(server.query(WAITING)) == 2, "its repetition waits too")
    answer = worker.read_line()
    assert answer["success"] or answer["code"] == "PG_WRITE_UNKNOWN", answer
    got = worker.request({"action": "get", **KEY})["data"]
    assert got["state_data"] == {"n": 2}
    assert got["revision"] == (answer["data"]["revision"] if answer["success"] else got["revision"])
    network.mend()
    serves(worker)


def test_a_pooler_that_does_not_show_itself_is_noticed_by_its_errors(here: Here, server: OwnServer) -> None:
    """It passes for a direct connection; where a prepared statement is not known, the same is sent unprepared."""
    switching = Switching(server.url)
    try:
        worker = here(DATABASE_URL=switching.url, **NO_CACHE)
        for turn in range(3):
            for _ in range(6):  # often enough to be prepared
                for action in EVERY_ACTION:
                    works(worker, action)
            switching.switch()
            saved = save(worker, turn)
            assert saved["success"], saved
            assert worker.request({"action": "get", **KEY})["data"]["state_data"] == {"n": turn}
        serves(worker)
    finally:
        switching.close()
