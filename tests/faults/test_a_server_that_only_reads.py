"""A server that takes no writes serves reads, says so, and is no dead end (contract, sections 3 and 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.actions import EVERY_ACTION, KEY, NO_CACHE, ask, fails, save, serves, works

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer


@pytest.fixture
def only_reads(server: OwnServer) -> Iterator[None]:
    """The server is made read-only when a worker asks for it, and takes writes again afterwards."""
    yield
    server.alter(default_transaction_read_only=None)


@pytest.mark.usefixtures("only_reads")
def test_reads_go_on_and_writes_are_refused_until_the_server_takes_them_again(here: Here, server: OwnServer) -> None:
    """With default_transaction_read_only every write is PG_WRITE_ERROR, every read works, the health is down."""
    worker = here(**NO_CACHE)
    assert save(worker, 1)["success"]
    server.alter(default_transaction_read_only="on")
    for action in EVERY_ACTION:
        if EVERY_ACTION[action].without == "PG_WRITE_ERROR":
            assert "read-only" in fails(worker, action)["error"]
        else:
            works(worker, action)
    health = ask(worker, "healthcheck")["data"]
    assert (health["status"], health["pg"]["ok"], health["pg"]["writable"]) == ("down", False, False)
    assert health["pg"]["error"]
    got = worker.request({"action": "get", **KEY})["data"]
    assert (got["state_data"], got["revision"]) == ({"n": 1}, 1)
    server.alter(default_transaction_read_only=None)
    assert save(worker, 2)["data"]["revision"] == 2
    serves(worker)


@pytest.mark.usefixtures("only_reads")
def test_a_first_start_on_a_server_that_only_reads_says_so_and_succeeds_later(here: Here, server: OwnServer) -> None:
    """Where the tables cannot be made, each action fails by its own code and names the cause; later they are made."""
    server.alter(default_transaction_read_only="on")
    worker = here(**NO_CACHE)
    for action, asked in EVERY_ACTION.items():
        answer = fails(worker, action)
        if asked.without:
            assert "read-only" in answer["error"]
    assert ask(worker, "healthcheck")["data"]["status"] == "down"
    server.alter(default_transaction_read_only=None)
    serves(worker)
