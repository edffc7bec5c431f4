"""While PostgreSQL is down every answer says so, and when it is back the same process serves (contract, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.faults.actions import EVERY_ACTION, KEY, NO_CACHE, ask, fails, save, serves, works
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer

WAITING = "SELECT pid FROM pg_stat_activity WHERE application_name = 'checkpoint-manager' AND wait_event_type = 'Lock'"


@pytest.mark.parametrize("how", ["kill", "stop_at_once"])
def test_every_answer_is_true_while_the_server_is_down_and_it_serves_again_afterwards(
    how: str, here: Here, server: OwnServer, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """SIGKILL or immediate stop: each action fails by its own code in bounded time, then works; what was saved is there."""
    worker = here(**NO_CACHE)
    assert save(worker, 1)["success"]
    getattr(server, how)()
    try:
        for action in EVERY_ACTION:
            with bounded():
                fails(worker, action)
        health = ask(worker, "healthcheck")["data"]
        assert (health["status"], health["pg"]["ok"]) == ("down", False)
    finally:
        server.start()
    assert worker.request({"action": "get", **KEY})["data"]["state_data"] == {"n": 1}
    for action in EVERY_ACTION:
        works(worker, action)
    serves(worker)


def test_what_is_cached_is_served_while_the_server_is_down(here: Here, server: OwnServer) -> None:
    """A hit needs no PostgreSQL; an expired entry is served where the request allows it, marked as stale."""
    fresh, expired = here(), here(**NO_CACHE)
    assert save(fresh, 1)["success"]
    server.stop_at_once()
    try:
        hit = ask(fresh, "cached_get")["data"]
        assert (hit["source"], hit["stale"], hit["state_data"]) == ("sqlite", False, {"n": 1})
        assert ask(expired, "cached_get")["code"] == "PG_READ_ERROR"
        late = expired.request({"action": "cached_get", **KEY, "allow_stale": True})["data"]
        assert (late["source"], late["stale"], late["state_data"]) == ("sqlite", True, {"n": 1})
    finally:
        server.start()
    answer = expired.request({"action": "cached_get", **KEY, "allow_stale": True})["data"]
    assert (answer["source"], answer["stale"]) == ("pg", False)


def test_a_server_killed_during_a_save_leaves_the_outcome_unknown(
    here: Here, server: OwnServer, own_schema: str, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """The save was sent and no server is left to ask: PG_WRITE_UNKNOWN, and a get tells once it is back."""
    worker = here(CHECKPOINT_STATEMENT_TIMEOUT="20")
    assert save(worker, 1)["success"]
    other = psycopg.connect(server.url)
    other.execute(f"LOCK TABLE {own_schema}.workflow_checkpoints")
    worker.send({"action": "save", **KEY, "state_data": {"n": 2}})
    until(lambda: server.query(WAITING), "the save waits")
    server.kill()
    other.close()
    try:
        with bounded():
            assert worker.read_line()["code"] == "PG_WRITE_UNKNOWN"
    finally:
        server.start()
    got = worker.request({"action": "get", **KEY})["data"]
    assert (got["state_data"], got["revision"]) == ({"n": 1}, 1)
    serves(worker)
