"""stdout carries answers and nothing else, and nobody's neglect holds them up (contract, section 1)."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from tests.support.process import bytes_in, until
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

HEALTH = {"action": "healthcheck"}
CACHE = {"action": "cache", "workflow_id": "wf", "step_id": "s", "state_data": {}}
LIST = b'{"action":"list","workflow_id":"wf"}\n'
TALKATIVE = {"CHECKPOINT_LOG_LEVEL": "DEBUG", "DATABASE_URL": "postgresql://127.0.0.1:1/nowhere"}  # each list is logged
STRAY_WRITES = '''\
"""Every way to write to file descriptor 1, at the moment when the worker opens its cache."""
import ctypes, os, subprocess, sys

def stray(event, arguments):
    if event == "sqlite3.connect" and not os.environ.get("STRAY_DONE"):
        os.environ["STRAY_DONE"] = "1"
        sys.__stdout__.write("stray write\\n")
        print("stray print")
        print("stray flushed print", flush=True)
        os.write(1, b"stray os.write\\n")
        libc = ctypes.CDLL(None)
        libc.puts(b"stray puts")
        libc.fflush(None)
        subprocess.run(["sh", "-c", "echo stray child; cat"], check=True)
        print("stray print that stays in its buffer")

sys.addaudithook(stray)
'''


def test_a_stray_print_never_reaches_the_wire(start_offline_worker: StartWorker, tmp_path: Path) -> None:
    """Prints of Python, of a C library and of a child go to stderr, and a child cannot eat requests."""
    (tmp_path / "sitecustomize.py").write_text(STRAY_WRITES, encoding="utf-8")
    worker = start_offline_worker({"PYTHONPATH": str(tmp_path)})
    assert worker.ask(CACHE)["written"]
    worker.send(HEALTH)
    worker.send(HEALTH)
    assert [answer["success"] for answer in worker.finish()] == [True, True]
    for what in ("print", "flushed print", "write", "os.write", "puts", "child"):
        assert f"stray {what}\n" in worker.stderr


def test_a_reader_that_is_gone_ends_the_worker_quietly(offline_worker: Worker) -> None:
    """With the other end of stdout closed the worker ends by itself, status 0, no traceback."""
    offline_worker.ask(HEALTH)
    offline_worker.close_output()
    offline_worker.send(HEALTH)
    assert offline_worker.wait() == 0
    assert offline_worker.stderr == ""


def test_a_reader_that_goes_in_the_middle_of_an_answer_ends_the_worker_quietly(offline_worker: Worker) -> None:
    """The same where the worker is waiting for the pipe to be read when its reader goes."""
    offline_worker.ask({**CACHE, "state_data": {"x": "x" * 500_000}})
    offline_worker.send_raw(b'{"action":"cached_get","workflow_id":"wf","step_id":"s"}\n' * 3, reading=False)
    out = offline_worker.process.stdout
    assert out is not None
    until(lambda: bytes_in(out) >= 65_536, "the pipe is full")
    offline_worker.close_output()
    assert offline_worker.wait() == 0
    assert offline_worker.stderr == ""


def test_an_unread_stderr_never_holds_up_an_answer(start_offline_worker: StartWorker) -> None:
    """At DEBUG, with nobody reading stderr and its pipe full, every request is answered and the worker ends."""
    worker = start_offline_worker(TALKATIVE, stderr_read=False)
    err = worker.process.stderr
    assert err is not None
    answered = 0
    while bytes_in(err) < 60_000:
        worker.send_raw(LIST * 200)
        answered += len(worker.read_lines(200))
        assert answered < 20_000, f"the log is too quiet to fill a pipe: {bytes_in(err)} bytes"
    worker.send_raw(LIST * 2000)
    assert len(worker.read_lines(2000)) == 2000
    assert worker.finish() == []


def test_a_closed_stderr_is_no_reason_to_fail(start_offline_worker: StartWorker) -> None:
    """A host that closes its end of stderr still gets every answer."""
    worker = start_offline_worker(TALKATIVE, stderr_read=False)
    assert worker.process.stderr is not None
    worker.process.stderr.close()
    worker.send_raw(LIST * 100)
    assert len(worker.finish()) == 100


def test_a_caller_that_made_stdout_non_blocking_gets_every_answer(
    start_offline_worker: StartWorker,
) -> None:
    """Where its pipe is full, a write that would not wait is made again when there is room."""
    start = "import os, sys; os.set_blocking(1, False); os.execv(sys.executable, [sys.executable, sys.argv[1]])"
    worker = start_offline_worker(argv=(sys.executable, "-c", start, str(RUNNER)))
    state = {"x": "x" * 2000}
    for action in ("cache", "cached_get"):
        for _ in range(3000):
            fields = {"state_data": state} if action == "cache" else {}
            worker.send_raw(
                json.dumps({"action": action, "workflow_id": "wf", "step_id": "s", **fields}).encode() + b"\n",
                reading=action == "cache",
            )
        answers = worker.read_lines(3000)
        assert all(answer["success"] for answer in answers)
    assert worker.finish() == []
