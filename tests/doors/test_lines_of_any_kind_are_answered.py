"""What goes over the pipe, line by line: nothing is lost, changed or met with silence (contract, sections 1 and 2)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.doors.peer import INITIALIZE, INITIALIZED, call, lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.doors.conftest import Spot, StartPeer

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
LIMIT = 20_000
CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"cache_to_sqlite","arguments":%s}}\n'
REFUSED: dict[bytes, tuple[int, object]] = {
    b"this is no JSON\n": (PARSE_ERROR, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping"\n': (PARSE_ERROR, None),
    b'{"jsonrpc":"2.0","id":1,"method":"p\xff"}\n': (PARSE_ERROR, None),
    CALL % b'{"workflow_id":"w","step_id":"s","state_data":{"x":NaN}}': (PARSE_ERROR, None),
    CALL % b'{"workflow_id":"w","step_id":"s","state_data":{"x":-Infinity}}': (PARSE_ERROR, None),
    b"[" * 5000 + b"\n": (PARSE_ERROR, None),
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}] x\n': (PARSE_ERROR, None),
    b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b'{"x":' * 3000 + b"1" + b"}" * 3001 + b"\n": (
        PARSE_ERROR,
        None,
    ),
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]\n': (INVALID_REQUEST, None),
    b'"ping"\n': (INVALID_REQUEST, None),
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}\n': (INVALID_REQUEST, None),
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n': (INVALID_REQUEST, None),
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}\n': (INVALID_REQUEST, None),
    b'{"jsonrpc":"2.0","id":7,"method":7}\n': (INVALID_REQUEST, 7),
    b'{"jsonrpc":"1.0","id":"seven","method":"ping"}\n': (INVALID_REQUEST, "seven"),
    b'{"jsonrpc":"2.0","id":8,"method":"ping","params":{"_meta":{"x":1e999}}}\n': (INVALID_REQUEST, None),
    b'{"x":"' + b"x" * LIMIT + b'"}\n': (INVALID_REQUEST, None),
}
STATE = '{"n":123456789012345678901234567890, "f":1.0,"e":1E5,"z":-0.0,"u":"\\u00e9\\u0000","n":1,"\u2028":[]}'


def test_a_line_that_is_no_message_gets_its_error_and_the_next_is_served(start_peer: StartPeer) -> None:
    """-32700 for what is not JSON, -32600 for JSON that is no message, with the id where one can be told."""
    peer = start_peer({"CHECKPOINT_MAX_REQUEST_BYTES": str(LIMIT)})
    peer.begin()
    for line, (code, message_id) in REFUSED.items():
        peer.send(line)
        answer = peer.read()
        assert (answer["error"]["code"], answer["id"]) == (code, message_id), line[:100]
    peer.send(b"\n \r\n" + lines({"jsonrpc": "2.0", "id": 2**70, "method": "ping"}))
    assert peer.read() == {"jsonrpc": "2.0", "id": 2**70, "result": {}}
    peer.end_input()
    assert peer.read_all() == []
    assert (peer.wait(), peer.stderr) == (0, "")


def test_a_state_keeps_its_text(start_peer: StartPeer) -> None:
    """Digits, escapes, order and repetitions come back as they were sent, as text and as structured content."""
    peer = start_peer()
    peer.begin()
    peer.send(CALL % (b'{"workflow_id":"w","step_id":"s","state_data":%s}' % STATE.encode()))
    assert not peer.read()["result"]["isError"]
    peer.send(lines(call(2, "get_cached_state", {"workflow_id": "w", "step_id": "s"})))
    peer.end_input()
    (line,) = peer.read_all_lines()
    (text,) = [each["text"] for each in json.loads(line)["result"]["content"]]
    assert f'"state_data":{STATE},' in text
    assert f'"structuredContent":{text}' in line.decode()


@pytest.mark.parametrize("enveloped", [False, True], ids=["2025-11-25", "2026-07-28"])
def test_every_call_before_the_end_of_input_is_answered(
    start_peer: StartPeer, here: Spot, tmp_path: Path, enveloped: bool
) -> None:
    """Fifty calls in a file, and then nothing: fifty answers, fifty checkpoints, exit status 0."""
    calls = [
        call(n, "save_checkpoint", {"workflow_id": "wf", "step_id": f"s{n}", "state_data": {}}, enveloped=enveloped)
        for n in range(50)
    ]
    requests = tmp_path / "requests.jsonl"
    handshake = b"" if enveloped else lines(INITIALIZE, INITIALIZED)
    requests.write_bytes(handshake + lines(*calls))
    with requests.open("rb") as stdin:
        peer = start_peer(here.settings, stdin=stdin)
        answers = [answer for answer in peer.read_all() if answer["id"] != "hello"]
    assert [answer["id"] for answer in answers] == list(range(50))
    assert not any(answer["result"]["isError"] for answer in answers)
    assert here.sql.execute("SELECT count(*) FROM workflow_checkpoints").fetchone() == (50,)
    assert (peer.wait(), peer.stderr) == (0, "")


def test_a_cancelled_call_is_not_answered_and_holds_nothing_up(start_peer: StartPeer, here: Spot) -> None:
    """A call cancelled before its turn is not carried out; the end of input comes all the same."""
    peer = start_peer(here.settings)
    peer.begin()
    peer.send(lines(call(1, "list_workflows", {})))
    assert not peer.read()["result"]["isError"]
    with here.sql.transaction():
        here.sql.execute("LOCK TABLE workflow_checkpoints IN ACCESS EXCLUSIVE MODE")
        save: dict[str, Any] = {"workflow_id": "wf", "state_data": {}}
        peer.send(lines(call(2, "save_checkpoint", save | {"step_id": "waits"})))
        peer.send(lines(call(3, "save_checkpoint", save | {"step_id": "cancelled"})))
        peer.send(lines({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}))
        peer.send(lines({"jsonrpc": "2.0", "id": 4, "method": "ping"}))
        assert peer.read()["id"] == 4
    peer.end_input()
    assert [answer["id"] for answer in peer.read_all()] == [2]
    assert peer.wait() == 0
    assert here.sql.execute("SELECT step_id FROM workflow_checkpoints").fetchall() == [("waits",)]
