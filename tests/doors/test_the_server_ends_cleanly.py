"""Signals, a reader that goes away, an unread stderr, and a print of some library (contract, section 1)."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.doors.peer import call, lines
from tests.support.process import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.doors.conftest import Spot, StartPeer

CONNECTION_CLOSED = -32000
NOISE = """
import os, sys, threading, time

def make_noise():
    while "checkpoint.mcp.session" not in sys.modules or not hasattr(sys.modules["checkpoint.mcp.session"], "run"):
        time.sleep(0.001)
    for _ in range(20):
        os.write(1, b"noise of a library\\n")

threading.Thread(target=make_noise, daemon=True).start()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_call_under_way_and_begins_no_other(
    start_peer: StartPeer, here: Spot, number: signal.Signals
) -> None:
    """The save that waits for a lock is answered; the one behind it is told that it was not carried out; status 0."""
    peer = start_peer(here.settings)
    peer.begin()
    peer.send(lines(call(1, "list_workflows", {})))
    assert not peer.read()["result"]["isError"]
    with here.sql.transaction():
        here.sql.execute("LOCK TABLE workflow_checkpoints IN ACCESS EXCLUSIVE MODE")
        for message_id, step in ((2, "under-way"), (3, "after")):
            save = {"workflow_id": "wf", "step_id": step, "state_data": {}}
            peer.send(lines(call(message_id, "save_checkpoint", save)))
        peer.send(lines({"jsonrpc": "2.0", "id": 4, "method": "ping"}))
        assert peer.read()["id"] == 4
        question = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
        until(lambda: here.sql.execute(question).fetchone() != (0,), "the save waits for the lock")
        peer.signal(number)
        until(peer.ignores_a_ping, "the signal was taken")
    answers = {answer["id"]: answer for answer in peer.read_all()}
    assert answers[2]["result"]["structuredContent"]["success"]
    assert answers[3]["error"]["code"] == CONNECTION_CLOSED
    assert (peer.wait(), peer.stderr) == (0, "")
    assert here.sql.execute("SELECT step_id FROM workflow_checkpoints").fetchall() == [("under-way",)]


def test_an_idle_server_ends_at_a_signal_and_stops_waiting_for_its_reader(start_peer: StartPeer) -> None:
    """With nothing under way the signal ends it at once, without a word."""
    peer = start_peer()
    peer.begin()
    peer.signal(signal.SIGTERM)
    assert peer.read_all() == []
    assert (peer.wait(), peer.stderr) == (0, "")


def test_a_reader_that_goes_away_ends_it_without_noise(start_peer: StartPeer) -> None:
    """The other end of stdout is closed: no traceback."""
    peer = start_peer(reading=False)
    assert peer.process.stdout is not None
    peer.process.stdout.close()
    peer.send(lines({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
    assert (peer.wait(), peer.stderr) == (0, "")


def test_neither_a_full_stderr_nor_a_print_disturbs_the_answers(start_peer: StartPeer, tmp_path: Path) -> None:
    """Nobody reads stderr, every call logs an error there, something prints: all calls are answered, line by line."""
    (tmp_path / "sitecustomize.py").write_text(NOISE, encoding="utf-8")
    settings = {
        "PYTHONPATH": str(tmp_path),
        "DATABASE_URL": "postgresql://user@127.0.0.1:1/none",
        "CHECKPOINT_LOG_LEVEL": "DEBUG",
    }
    peer = start_peer(settings, stderr_read=False)
    peer.begin()
    key = {"workflow_id": "wf", "step_id": "s" * 200}
    peer.send(lines(*(call(number, "get_checkpoint", key) for number in range(300))))
    peer.end_input()
    answers = peer.read_all()
    assert [answer["id"] for answer in answers] == list(range(300))
    assert {answer["result"]["structuredContent"]["code"] for answer in answers} == {"PG_READ_ERROR"}
    assert peer.wait() == 0
    assert peer.process.stderr is not None
    assert b"noise of a library" in peer.process.stderr.read(65536)
