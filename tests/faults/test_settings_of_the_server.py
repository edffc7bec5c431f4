"""What a server, a database or a role sets for its sessions changes no answer (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.faults.actions import EVERY_ACTION, KEY, NO_CACHE, ask, save, serves, works
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer

ODD: dict[str, str] = {
    "datestyle": "German, DMY",
    "intervalstyle": "sql_standard",
    "timezone": "Asia/Kolkata",
    "bytea_output": "escape",
    "standard_conforming_strings": "off",
    "escape_string_warning": "off",
    "default_transaction_isolation": "serializable",
    "client_min_messages": "debug5",
    "extra_float_digits": "-15",
    "array_nulls": "off",
    "quote_all_identifiers": "on",
    "transform_null_equals": "on",
    "plan_cache_mode": "force_generic_plan",
    "jit_above_cost": "0",
}


@pytest.fixture
def odd(server: OwnServer) -> Iterator[None]:
    """The server sets what nobody expects, for every session."""
    server.alter(**ODD)
    yield
    server.alter(**dict.fromkeys(ODD))


@pytest.mark.usefixtures("odd")
def test_odd_settings_change_nothing(
    here: Here, server: OwnServer, through: Callable[[str], Network], own_schema: str
) -> None:
    """Date styles, isolation, escapes, plans, messages: every action works, and so does the look-up after a break."""
    network = through(server.url)
    worker = here(DATABASE_URL=network.url, CHECKPOINT_STATEMENT_TIMEOUT="20", **NO_CACHE)
    first = works(worker, "save")["data"]
    got = works(worker, "get")["data"]
    assert (got["created_at"], got["updated_at"]) == (first["created_at"], first["updated_at"])
    assert got["created_at"].endswith("+00:00")
    moment = f"SELECT extract(epoch FROM updated_at) = extract(epoch FROM timestamptz '{got['updated_at']}')"
    assert server.query(f"{moment} FROM {own_schema}.workflow_checkpoints") == [(True,)]
    network.cut_after(0)
    assert save(worker, 2, expected_revision=1)["data"]["revision"] == 2
    for _ in range(6):  # often enough to be prepared
        for action in EVERY_ACTION:
            works(worker, action)
    serves(worker)


def test_messages_that_the_server_keeps_to_itself_make_no_success_of_an_unconfirmed_commit(
    here: Here, server: OwnServer
) -> None:
    """A commit that no standby confirms is unknown also where the server does not send the warning of it."""
    impatient = {"CHECKPOINT_STATEMENT_TIMEOUT": "0.3"}
    worker = here(**impatient)
    assert save(worker, 1)["success"]
    server.alter(synchronous_standby_names="nobody", client_min_messages="error")
    try:
        until(lambda: server.query("SHOW synchronous_standby_names") == [("nobody",)], "commits wait for a standby")
        for warm in (True, False):
            writer = worker if warm else here(**impatient)
            assert ask(writer, "get")["success"]
            assert save(writer, 2)["code"] == "PG_WRITE_UNKNOWN"
            assert writer.request({"action": "delete", **KEY})["code"] == "PG_WRITE_UNKNOWN"
    finally:
        server.alter(synchronous_standby_names=None, client_min_messages=None)
    serves(worker)
