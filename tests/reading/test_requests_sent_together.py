"""Requests that wait together may be served together: their answers are those of one by one, in order (contract, section 1)."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.asking import done
from tests.support.cache_file import write_locked
from tests.support.place import NO_HURRY
from tests.support.worker import WorkerGone

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.place import Place
    from tests.support.worker import Worker

TENANTS = ("default", "other", None)
VOLATILE = ("id", "created_at", "updated_at", "cached_at", "next_cursor", "last_updated_at")
LARGE = "x" * 300_000


def conversation(seed: int, workflow: str, length: int = 250) -> list[dict[str, Any]]:
    """Random requests on few keys: runs of one action, repeated keys, conflicts, refusals, large states."""
    dice = random.Random(seed)
    requests: list[dict[str, Any]] = []
    while len(requests) < length:
        action = dice.choice(["save", "save", "get", "cached_get", "cached_get", "cache", "delete", "list"])
        for _ in range(dice.choice([1, 1, 3, 12])):
            request: dict[str, Any] = {"action": action, "workflow_id": workflow, "step_id": f"s{dice.randrange(6)}"}
            if (tenant := dice.choice(TENANTS)) is not None:
                request["tenant_id"] = tenant
            if action in ("save", "cache"):
                request["state_data"] = {"n": dice.randrange(10**6)}
                if dice.random() < 0.03:
                    request["state_data"]["large"] = LARGE
            if action == "save" and dice.random() < 0.15:
                request["expected_revision"] = dice.randrange(4)
            if action == "list":
                request["step_id"] = None
                request["limit"] = dice.choice([1, 3, 100])
            if dice.random() < 0.05:
                request[dice.choice(["step_id", "unknown"])] = ""
            requests.append(request)
    return requests


def plain(answer: dict[str, Any], workflow: str) -> Any:
    """The answer without what differs from run to run."""
    if not answer["success"]:
        return answer["code"], answer["error"]
    data = {name: value for name, value in answer["data"].items() if name not in VOLATILE}
    for row in data.get("checkpoints", []):
        for name in VOLATILE:
            row.pop(name, None)
    return anonymous(data, workflow)


def anonymous(value: Any, workflow: str) -> Any:
    """The same with the id of the workflow taken out."""
    if isinstance(value, dict):
        return {name: anonymous(inner, workflow) for name, inner in value.items()}
    if isinstance(value, list):
        return [anonymous(inner, workflow) for inner in value]
    return "*" if value == workflow else value


@pytest.mark.parametrize("seed", range(4))
def test_the_answers_are_those_of_one_by_one(place: Place, workflow: str, seed: int) -> None:
    """One conversation in one burst and once request by request: the same answers, the same rows, the same cache."""
    alone, together = f"{workflow} alone", f"{workflow} together"
    one_by_one = [place.worker.request(request) for request in conversation(seed, alone)]
    for request in (requests := conversation(seed, together)):
        place.worker.send(request)
    burst = place.worker.read_lines(len(requests))
    for number, (expected, answer) in enumerate(zip(one_by_one, burst, strict=True)):
        assert plain(answer, together) == plain(expected, alone), (number, requests[number])
    for action in ("get", "cached_get"):
        for step in range(6):
            rows = [
                place.worker.request({"action": action, "workflow_id": w, "step_id": f"s{step}"})
                for w in (alone, together)
            ]
            assert plain(rows[1], together) == plain(rows[0], alone)


def test_times_follow_the_order_of_requests(place: Place, workflow: str) -> None:
    """In a burst of saves, of new keys and of keys just saved, every updated_at is later than the one before."""
    dice = random.Random(7)
    requests = [
        {"action": "save", "workflow_id": workflow, "step_id": f"s{dice.randrange(40)}", "state_data": {"n": number}}
        for number in range(300)
    ]
    for request in requests:
        place.worker.send(request)
    times = [answer["data"]["updated_at"] for answer in place.worker.read_lines(len(requests))]
    late = [number for number in range(1, len(times)) if times[number] <= times[number - 1]]
    assert late == []


def test_one_bad_request_fails_alone(place: Place, workflow: str) -> None:
    """A state that PostgreSQL cannot take, in the midst of others: it is refused, its neighbours are saved."""
    deep = '{"a":' * 30_000 + "1" + "}" * 30_000  # every Python and every PostgreSQL refuses it
    for step in ("a", "b", "c"):
        state = deep if step == "b" else '{"n":1}'
        place.worker.send_raw(
            f'{{"action":"save","workflow_id":"{workflow}","step_id":"{step}","state_data":{state}}}\n'.encode()
        )
    answers = place.worker.read_lines(3)
    assert [answer["code"] for answer in answers] in ([None, "INVALID_ARG", None], [None, "INVALID_JSON", None])
    assert done(place.worker, "list", workflow_id=workflow)["count"] == 2


def saves(workflow: str, count: int) -> list[dict[str, Any]]:
    """Saves of as many steps."""
    return [
        {"action": "save", "workflow_id": workflow, "step_id": f"step {number}", "state_data": {"n": number}}
        for number in range(count)
    ]


@pytest.mark.parametrize("rest", [b"", b'{"action":"save","workflow_id":'], ids=["nothing", "half a line"])
def test_what_was_served_is_answered_whatever_follows(worker: Worker, workflow: str, rest: bytes) -> None:
    """A burst, then nothing more, or the beginning of a line and silence: every answer comes."""
    for request in saves(workflow, 700):
        worker.send(request)
    worker.send_raw(rest)
    answers = worker.read_lines(700)
    assert [answer["data"]["step_id"] for answer in answers] == [f"step {number}" for number in range(700)]


def test_what_was_served_is_answered_while_the_next_requests_wait(
    worker: Worker, workflow: str, sql: Connection
) -> None:
    """Requests that lie behind a lock in PostgreSQL hold up no answer of those before them."""
    requests = saves(workflow, 700)
    worker.ask(requests[-1])
    with sql.transaction():
        sql.execute("SELECT FROM workflow_checkpoints WHERE step_id = 'step 699' FOR UPDATE")
        for request in requests:
            worker.send(request)
        answered = worker.read_lines(256)
        assert all(answer["success"] for answer in answered)
    rest = worker.read_lines(700 - 256)
    assert all(answer["success"] for answer in rest)


def test_a_worker_that_is_told_to_stop_has_answered_what_it_saved(
    worker: Worker, workflow: str, sql: Connection
) -> None:
    """SIGTERM amid a burst: as many answers as rows, no row without its answer."""
    for request in saves(workflow, 3000):
        worker.send(request)
    answers = [worker.read_line()]
    worker.signal(signal.SIGTERM)
    answers += worker.read_all()
    assert worker.wait() == 0
    count = sql.execute("SELECT count(*) FROM workflow_checkpoints WHERE workflow_id = %s", (workflow,)).fetchone()
    assert count == (len(answers),)


def test_a_caller_that_takes_its_time_is_not_taken_for_a_slow_database(
    start_worker: StartWorker, workflow: str
) -> None:
    """Nobody reads for longer than a statement may take, with more answers than pipes hold: all of them are successes."""
    worker = start_worker({"CHECKPOINT_STATEMENT_TIMEOUT": "1"})
    state = {"x": "x" * 2000}
    requests = [request | {"state_data": state} for request in saves(workflow, 1000)]
    for request in requests:
        worker.send(request)
    assert all(answer["success"] for answer in worker.read_lines(len(requests)))
    reads = [{"action": "get", "workflow_id": workflow, "step_id": request["step_id"]} for request in requests] * 3
    lines = b"".join(json.dumps(request).encode() + b"\n" for request in reads)
    worker.send_raw(lines, reading=False)
    time.sleep(3)
    answers = worker.read_lines(len(reads))
    assert [answer["data"]["state_data"] for answer in answers] == [state] * len(reads)


def test_a_cache_that_takes_its_time_is_not_taken_for_a_slow_database(
    start_worker: StartWorker, workflow: str, folder: Path
) -> None:
    """The cache is locked for longer than a statement may take: every save of a burst succeeds all the same."""
    worker = start_worker({"CHECKPOINT_STATEMENT_TIMEOUT": "1", "CHECKPOINT_CACHE_WAIT_MS": "2500"})
    worker.ask({"action": "save", "workflow_id": workflow, "step_id": "first", "state_data": {}})
    requests = saves(workflow, 700)
    with write_locked(folder):
        for request in requests:
            worker.send(request)
        answers = worker.read_lines(len(requests))
    assert [answer["code"] for answer in answers] == [None] * len(requests)
    assert not any(answer["data"]["cache_written"] for answer in answers)


def test_saves_with_an_expected_revision_are_answered_one_by_one(
    worker: Worker, workflow: str, sql: Connection
) -> None:
    """The last of a burst waits for a lock in PostgreSQL; all before it are answered meanwhile, and so after SIGTERM."""
    requests = [request | {"expected_revision": 0} for request in saves(workflow, 60)]
    worker.ask({"action": "save", "workflow_id": workflow, "step_id": "held", "state_data": {}})
    with sql.transaction():
        sql.execute("SELECT FROM workflow_checkpoints WHERE step_id = 'held' FOR UPDATE")
        for request in (*requests, {**requests[0], "step_id": "held", "expected_revision": 1}, *requests):
            worker.send(request)
        assert all(answer["success"] for answer in worker.read_lines(60))
        worker.signal(signal.SIGTERM)
    assert len(worker.read_all()) == 1, "the one under way is finished, and none is begun"


def test_reads_of_large_states_are_not_held_together(start_worker: StartWorker, workflow: str) -> None:
    """A burst of reads of many large states, from PostgreSQL and from the cache, takes the memory of a few of them."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    state = {"x": "x" * 4_000_000}
    for step in ("a", "b", "c"):
        worker.ask({"action": "save", "workflow_id": workflow, "step_id": step, "state_data": state})
    for action in ("get", "cached_get"):
        for number in range(60):
            worker.send({"action": action, "workflow_id": workflow, "step_id": "abc"[number % 3]})
        for number in range(60):
            data = worker.read_line()["data"]
            assert (data["step_id"], data["state_data"] == state) == ("abc"[number % 3], True)
    peak = next(
        line for line in Path(f"/proc/{worker.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    assert int(peak.split()[1]) < 150_000, peak


def test_a_worker_ends_when_nobody_reads_though_requests_keep_coming(worker: Worker, workflow: str) -> None:
    """The reader goes away in the midst of a burst that has no end: the worker notices, and ends without noise."""
    worker.ask({"action": "save", "workflow_id": workflow, "step_id": "s", "state_data": {}})
    worker.close_output()
    line = json.dumps(saves(workflow, 1)[0]).encode() + b"\n"

    def send_without_end() -> None:
        for _ in range(1000):
            worker.send_raw(line * 1000, reading=False)

    with pytest.raises(WorkerGone):
        send_without_end()
    assert worker.wait() == 0


def test_blank_lines_without_end_hold_back_no_answer(worker: Worker, workflow: str) -> None:
    """A burst, then nothing but line ends: the answers of the burst come."""
    for request in saves(workflow, 300):
        worker.send(request)
    give_up_at = time.monotonic() + 20
    while worker.says_nothing(0):
        worker.send_raw(b"\n" * 100, reading=False)
        time.sleep(0.001)
        assert time.monotonic() < give_up_at, "no answer came while blank lines did"
    assert all(answer["success"] for answer in worker.read_lines(300))
