"""After a signal an answer is given up when nobody takes anything of it, not when it is taken slowly (contract, section 1)."""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

import pytest

from checkpoint.output import WRITE_BYTES, Output
from tests.support.process import bytes_in, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.worker import Worker

SMALL_PIPE = 64 * 1024
STATE_BYTES = 8_000_000
PAUSE = 0.048  # before each of some 120 pieces: more than the 5 s after which an answer that nobody takes is given up


def test_an_answer_that_is_taken_slowly_comes_whole(offline_worker: Worker) -> None:
    """SIGTERM, and 8 MB taken in small pieces: the whole line comes, then the worker ends. It has to take over 5 s."""
    key = {"workflow_id": "wf", "step_id": "s"}
    offline_worker.ask({"action": "cache", **key, "state_data": {"x": "x" * STATE_BYTES}})
    out = offline_worker.process.stdout
    assert out is not None
    fcntl.fcntl(out, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
    offline_worker.send({"action": "cached_get", **key})
    until(lambda: bytes_in(out) > SMALL_PIPE - 4096, "the pipe is full")
    offline_worker.signal()
    os.set_blocking(out.fileno(), True)
    taken = bytearray()
    while piece := os.read(out.fileno(), SMALL_PIPE):
        taken += piece
        time.sleep(PAUSE)
    assert taken.endswith(b"\n"), f"{len(taken)} bytes came"
    answer = json.loads(taken)
    assert len(answer["data"]["state_data"]["x"]) == STATE_BYTES
    assert offline_worker.wait() == 0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The end to read from and the end to write to of a pipe that holds little."""
    reading, writing = os.pipe()
    fcntl.fcntl(reading, fcntl.F_SETPIPE_SZ, SMALL_PIPE)
    yield reading, writing
    os.close(reading)
    os.close(writing)


def test_the_time_counts_since_the_reader_took_something(pipe: tuple[int, int]) -> None:
    """Nothing is stuck before a write and after it; in between the count begins anew whenever a piece is taken."""
    reading, writing = pipe
    output = Output(writing)
    assert output.stuck_seconds == 0
    line = b"x" * (4 * WRITE_BYTES) + b"\n"
    writer = threading.Thread(target=output.put, args=(line,), kwargs={"more_follow": False})
    writer.start()
    taken = 0
    for pieces in (1, 2):
        until(lambda: output.stuck_seconds > 0.1, "the write waits for the reader")
        taken_at = time.monotonic()
        while taken < pieces * WRITE_BYTES:
            taken += len(os.read(reading, SMALL_PIPE))
        until(partial(counts_since, output, taken_at), "the count begins anew")
    while taken < len(line):
        taken += len(os.read(reading, SMALL_PIPE))
    writer.join()
    assert output.stuck_seconds == 0


def counts_since(output: Output, moment: float) -> bool:
    """Whether the write that waits has begun to wait after that moment, or none waits."""
    return output.stuck_seconds <= time.monotonic() - moment
