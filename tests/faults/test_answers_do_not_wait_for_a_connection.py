"""Answers that are ready do not wait while the requests after them get a connection (contract, section 1, flushing)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint import envelope, settings
from checkpoint.dispatch import Call, Dispatcher
from checkpoint.log import Log
from checkpoint.meanwhile import Meanwhile
from checkpoint.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.network import Network
    from tests.support.own_server import OwnServer

KEYS = b'"workflow_id":"wf","step_id":"s%d"'


def test_what_can_be_done_meanwhile_is_done_before_a_connection_is_made(
    server: OwnServer, own_schema: str, through: Callable[[str], Network], tmp_path: Path
) -> None:
    """The old connection is lost, a new one gets no reply: the work that mends the network is done, so all succeed."""
    network = through(server.url)
    environment = {
        "DATABASE_URL": network.url,
        "CHECKPOINT_SCHEMA": own_schema,
        "CHECKPOINT_DATA_DIR": str(tmp_path / "data"),
    }
    loaded = settings.load(environment)
    runtime = Runtime(loaded, environment, Log(loaded.log_level))
    dispatcher = Dispatcher(runtime)

    def call(action: bytes, number: int) -> Call:
        state = b',"state_data":{}' if action == b"save" else b""
        made = dispatcher.prepare(envelope.decode(b'{"action":"' + action + b'",' + KEYS % number + state + b"}"))
        assert isinstance(made, Call)
        return made

    try:
        for action in (b"save", b"get"):
            assert isinstance(dispatcher.serve_call(call(b"save", 1)), dict)
            network.part()
            network.silent_after(0)
            together = dispatcher.serve_together([call(action, 1), call(action, 2)], Meanwhile(network.mend))
            assert all(isinstance(answer, dict) for answer in together.make())
    finally:
        runtime.close()
