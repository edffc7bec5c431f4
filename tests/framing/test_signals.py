"""SIGTERM and SIGINT: finish what is begun, begin nothing new, exit with status 0 (contract, section 1)."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.process import bytes_in, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

BOTH = pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
HEALTH = {"action": "healthcheck"}
ALWAYS_GIVEN_UP_WITHIN = 30.0
AT_ONCE = 3.0


def save(step: str, value: int = 0) -> dict[str, object]:
    """A save request."""
    return {"action": "save", "workflow_id": "wf", "step_id": step, "state_data": {"value": value}}


@contextmanager
def table_locked(sql: Connection) -> Iterator[None]:
    """No other session writes checkpoints inside the block."""
    with sql.transaction():
        sql.execute("LOCK TABLE workflow_checkpoints IN SHARE ROW EXCLUSIVE MODE")
        yield


def wait_until_blocked(sql: Connection) -> None:
    """Until some session waits for the lock that this one holds."""
    question = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"
    until(lambda: sql.execute(question).fetchone() != (0,), "the save waits for the lock")


def steps_saved(sql: Connection) -> list[str]:
    """The steps in the table."""
    return [step for (step,) in sql.execute("SELECT step_id FROM workflow_checkpoints ORDER BY step_id")]


@BOTH
def test_an_idle_worker_ends(offline_worker: Worker, number: signal.Signals) -> None:
    """A signal ends a worker that waits for input, with status 0, without a word."""
    offline_worker.ask(HEALTH)
    offline_worker.signal(number)
    assert offline_worker.read_all() == []
    assert offline_worker.wait() == 0
    assert offline_worker.stderr == ""


@BOTH
def test_a_worker_that_was_never_asked_ends(start_offline_worker: StartWorker, number: signal.Signals) -> None:
    """A signal that comes while half a line is there ends the worker; the half is not answered."""
    worker = start_offline_worker()
    worker.send(HEALTH)
    worker.send_raw(b'{"action":')
    assert worker.read_line()["success"]
    worker.signal(number)
    assert worker.read_all() == []
    assert worker.wait() == 0


@BOTH
def test_the_request_under_way_is_answered_and_the_next_ones_are_not_begun(
    worker: Worker, sql: Connection, number: signal.Signals
) -> None:
    """A save that waits for a lock is finished and answered; requests sent after it are not executed, nor answered."""
    worker.ask(save("before"))
    with table_locked(sql):
        worker.send(save("under-way"))
        wait_until_blocked(sql)
        worker.send(save("after-1"))
        worker.send(save("after-2"))
        worker.signal(number)
    answers = worker.read_all()
    assert [answer["data"]["step_id"] for answer in answers] == ["under-way"]
    assert worker.wait() == 0
    assert steps_saved(sql) == ["before", "under-way"]


def test_a_batch_that_is_begun_is_answered_whole(worker: Worker, sql: Connection) -> None:
    """Of saves that are written together one is refused and served by itself, after the signal: nothing stays unanswered."""
    worker.ask({**save("theirs"), "tenant_id": "other"})
    steps = ["first", "theirs", *(f"step-{number}" for number in range(8))]
    with table_locked(sql):
        worker.send_raw(b"".join(json.dumps(save(step)).encode() + b"\n" for step in steps))
        wait_until_blocked(sql)
        worker.signal()
    answers = worker.read_all()
    assert [answer["code"] for answer in answers] == [None, "TENANT_CONFLICT", *[None] * 8]
    assert worker.wait() == 0
    assert steps_saved(sql) == sorted(steps)


def test_requests_already_read_but_not_begun_are_dropped(worker: Worker, sql: Connection) -> None:
    """The same where the later lines came in one piece with the one under way, so that the worker has read them."""
    worker.ask(save("before"))
    lines = b"".join(
        b'{"action":"%s","workflow_id":"wf","step_id":"%s","state_data":{}}\n' % (action, step)
        for action, step in [(b"save", b"under-way"), (b"get", b"under-way"), (b"save", b"after")]
    )
    with table_locked(sql):
        worker.send_raw(lines)
        wait_until_blocked(sql)
        worker.signal()
    answers = worker.read_all()
    assert [answer["data"]["step_id"] for answer in answers] == ["under-way"]
    assert worker.wait() == 0
    assert steps_saved(sql) == ["before", "under-way"]


@BOTH
def test_a_second_signal_ends_at_once(worker: Worker, sql: Connection, number: signal.Signals) -> None:
    """Who signals again does not wait for the request under way."""
    worker.ask(save("before"))
    with table_locked(sql):
        worker.send(save("under-way"))
        wait_until_blocked(sql)
        worker.signal(number)
        assert not ended(worker, 0.5)
        worker.signal(number)
        assert ended(worker, AT_ONCE)
        assert worker.read_all() == []
    assert "Traceback" not in worker.stderr


def ended(worker: Worker, patience: float) -> bool:
    """Whether the process ends within that time."""
    try:
        worker.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def test_a_signal_during_many_requests_leaves_no_half_answer(offline_worker: Worker) -> None:
    """Whatever was begun is answered whole, in order, and then the worker ends with status 0."""
    request = b'{"action":"cache","workflow_id":"wf","step_id":"%d","state_data":{}}\n'
    offline_worker.send_raw(b"".join(request % number for number in range(200)))
    first = offline_worker.read_line()
    offline_worker.signal()
    answers = [first, *offline_worker.read_all()]
    assert [answer["data"]["step_id"] for answer in answers] == [str(number) for number in range(len(answers))]
    assert offline_worker.wait() == 0


def fill_output(worker: Worker) -> None:
    """Asks for more than a pipe holds and reads none of it, until the worker waits to be read."""
    state = b'{"x":"' + b"x" * 200_000 + b'"}'
    worker.send_raw(b'{"action":"cache","workflow_id":"wf","step_id":"s","state_data":' + state + b"}\n")
    worker.read_line()
    worker.send_raw(b'{"action":"cached_get","workflow_id":"wf","step_id":"s"}\n' * 20, reading=False)
    assert worker.process.stdout is not None
    out = worker.process.stdout
    size = fcntl.fcntl(out, fcntl.F_GETPIPE_SZ)
    until(lambda: bytes_in(out) > size - 4096, "the pipe is full")


def test_output_that_nobody_takes_is_given_up_after_a_signal(offline_worker: Worker) -> None:
    """A host that signals and does not read gets rid of the worker all the same, a few seconds later."""
    fill_output(offline_worker)
    offline_worker.signal()
    began = time.monotonic()
    assert offline_worker.wait(ALWAYS_GIVEN_UP_WITHIN) == 0
    assert time.monotonic() - began > 4
    assert "Traceback" not in offline_worker.stderr


def test_output_that_is_taken_after_a_signal_comes_whole(offline_worker: Worker) -> None:
    """A host that signals and then reads gets the answer under way to its end."""
    fill_output(offline_worker)
    offline_worker.signal()
    answers = offline_worker.read_all()
    assert answers
    assert all(len(answer["data"]["state_data"]["x"]) == 200_000 for answer in answers)
    assert offline_worker.wait() == 0


def test_a_second_signal_ends_a_worker_that_nobody_reads(offline_worker: Worker) -> None:
    """The five seconds are not waited for when the host signals again."""
    fill_output(offline_worker)
    offline_worker.signal()
    assert not ended(offline_worker, 0.5)
    offline_worker.signal()
    assert ended(offline_worker, AT_ONCE)


def test_a_stray_alarm_changes_nothing(offline_worker: Worker) -> None:
    """SIGALRM from outside: the worker answers as before, and an idle one uses no processor time."""
    assert offline_worker.request({"action": "healthcheck"})["success"]
    offline_worker.signal(signal.SIGALRM)
    assert offline_worker.request({"action": "healthcheck"})["success"]
    before = processor_seconds(offline_worker.pid)
    time.sleep(1)
    assert processor_seconds(offline_worker.pid) - before < 0.2
    assert offline_worker.finish() == []


def processor_seconds(pid: int) -> float:
    """What a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
