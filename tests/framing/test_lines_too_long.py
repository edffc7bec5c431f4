"""Lines over the limit: refused at once, dropped without being held, the next one served (contract, section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.process import peak_memory

if TYPE_CHECKING:
    from tests.conftest import StartWorker

HEALTH = b'{"action":"healthcheck"}'
MIB = 1024 * 1024


def test_the_limit_is_the_longest_line_that_is_served(start_offline_worker: StartWorker) -> None:
    """Exactly the limit is served, one byte more is not; the line break does not count."""
    worker = start_offline_worker({"CHECKPOINT_MAX_REQUEST_BYTES": "1000"})
    worker.send_raw(HEALTH.ljust(1000) + b"\n" + HEALTH.ljust(1001) + b"\n" + HEALTH.ljust(999) + b"\r\n" + HEALTH)
    codes = [answer["code"] for answer in worker.finish()]
    assert codes == [None, "REQUEST_TOO_LARGE", None, None]


def test_the_refusal_comes_when_the_limit_is_crossed(start_offline_worker: StartWorker) -> None:
    """The answer does not wait for the end of the line, and the rest of the line gets no second one."""
    worker = start_offline_worker({"CHECKPOINT_MAX_REQUEST_BYTES": "1000"})
    worker.send_raw(b"x" * 1001)
    assert worker.read_line()["code"] == "REQUEST_TOO_LARGE"
    worker.send_raw(b"x" * 100_000)
    assert worker.says_nothing()
    worker.send_raw(b"\n" + HEALTH + b"\n")
    assert worker.read_line()["success"]
    assert worker.finish() == []


def test_a_line_too_long_at_the_end_of_input_is_answered_once(start_offline_worker: StartWorker) -> None:
    """The end of input in the middle of a dropped line adds no answer."""
    worker = start_offline_worker({"CHECKPOINT_MAX_REQUEST_BYTES": "1000"})
    worker.send_raw(HEALTH + b"\n" + b"x" * 5000)
    assert [answer["code"] for answer in worker.finish()] == [None, "REQUEST_TOO_LARGE"]


def test_an_endless_line_takes_bounded_memory(start_offline_worker: StartWorker) -> None:
    """300 MB without a line break do not make the process grow, and the line after them is served."""
    worker = start_offline_worker({"CHECKPOINT_MAX_REQUEST_BYTES": "65536"})
    worker.send_raw(HEALTH + b"\n")
    assert worker.read_line()["success"]
    before = peak_memory(worker.pid)
    for _ in range(300):
        worker.send_raw(b"x" * MIB)
    assert worker.read_line()["code"] == "REQUEST_TOO_LARGE"
    worker.send_raw(b"\n" + HEALTH + b"\n")
    assert worker.read_line()["success"]
    assert peak_memory(worker.pid) - before < 16 * MIB


def test_endless_blank_input_takes_bounded_memory(start_offline_worker: StartWorker) -> None:
    """Two million empty lines are skipped without being gathered."""
    worker = start_offline_worker()
    worker.send_raw(HEALTH + b"\n")
    assert worker.read_line()["success"]
    before = peak_memory(worker.pid)
    for _ in range(2):
        worker.send_raw(b"\n" * MIB)
    worker.send_raw(HEALTH + b"\n")
    assert worker.read_line()["success"]
    assert peak_memory(worker.pid) - before < 48 * MIB
