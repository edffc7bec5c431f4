"""approve and reject: each a process of its own, each told the truth, and the file written exactly once."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from tests.approval.asking import (
    REPORT,
    approve,
    ask,
    data_of,
    decide,
    in_a_process_of_its_own,
    key,
    reject,
    request,
    status,
)
from tests.support.process import until
from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker


def test_start_approve_and_approve_again_in_three_processes(start_worker: StartWorker, artifacts: Path) -> None:
    """The report becomes a file, its bytes and no more; a second yes finds it and does not touch it."""
    asked = data_of(in_a_process_of_its_own(start_worker, request("s", report="é\r\n\u0000 no line break at the end")))
    yes = decide("approve", "s", asked["approval_token"], by="Ada", reason="it is right")
    done = data_of(in_a_process_of_its_own(start_worker, yes))
    assert (done["status"], done["verified"], done["already_completed"]) == ("completed", True, False)
    assert (done["decided_by"], done["reason"], done["expired"]) == ("Ada", "it is right", False)
    assert done["requested_at"] == asked["requested_at"] < done["decided_at"]
    file = artifacts / os.path.basename(asked["output"])
    assert file == artifacts.resolve() / os.path.basename(done["output"])
    assert file.read_bytes() == "é\r\n\u0000 no line break at the end".encode()
    before = file.stat()
    again = data_of(in_a_process_of_its_own(start_worker, {**yes, "by": "Bob"}))
    assert again == {**done, "already_completed": True}
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_ctime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
        before.st_ctime_ns,
    )
    assert [path.name for path in artifacts.iterdir()] == [file.name]
    repeated = data_of(in_a_process_of_its_own(start_worker, request("s", report="never used")))
    assert (repeated["status"], repeated["verified"], repeated["created"]) == ("completed", True, False)


def test_a_no_is_final_and_writes_nothing(worker: Worker, artifacts: Path) -> None:
    """Rejected with who and why; again is the same answer; a yes comes too late."""
    token = ask(worker, "s")["approval_token"]
    done = data_of(reject(worker, "s", token, by="Ada", reason="too long"))
    assert (done["status"], done["already_rejected"], done["verified"]) == ("rejected", False, False)
    assert (done["decided_by"], done["reason"]) == ("Ada", "too long")
    assert data_of(reject(worker, "s", token, by="Bob")) == {**done, "already_rejected": True}
    assert approve(worker, "s", token)["code"] == "ALREADY_DECIDED"
    known = ask(worker, "s", renew=True)
    assert (known["status"], known["decided_by"], known["reason"]) == ("rejected", "Ada", "too long")
    assert not artifacts.exists()


def test_a_no_after_a_yes_is_told_so(worker: Worker) -> None:
    """The record stays completed."""
    token = ask(worker, "s")["approval_token"]
    assert approve(worker, "s", token)["success"]
    assert reject(worker, "s", token)["code"] == "ALREADY_DECIDED"
    assert status(worker, "s") == "completed"


def test_a_wrong_token_is_refused_and_uses_nothing_up(worker: Worker) -> None:
    """A token that is nobody's, another step's, workflow's or tenant's; the right one still works after all of them."""
    right = ask(worker, "s")["approval_token"]
    others = [
        ask(worker, "other")["approval_token"],
        data_of(worker.request({**request("s"), "workflow_id": "wg"}))["approval_token"],
        ask(worker, "tenants", tenant_id="acme")["approval_token"],
        "x",
        "é" * 32,
        right.upper(),
        right[:-1],
        right + " ",
    ]
    before = worker.request({"action": "get", **key("s")})["data"]
    for token in others:
        for decision in (approve, reject):
            assert decision(worker, "s", token)["code"] == "TOKEN_MISMATCH"
    assert worker.request({"action": "get", **key("s")})["data"] == before
    assert data_of(approve(worker, "s", right))["status"] == "completed"


def test_nothing_to_decide_is_not_found(worker: Worker) -> None:
    """APPROVAL_NOT_FOUND, and nothing comes about."""
    for action in ("approve", "reject"):
        assert worker.request(decide(action, "s", "0" * 64))["code"] == "APPROVAL_NOT_FOUND"
    assert status(worker, "s") is None


def test_an_output_that_was_changed_or_removed_is_told_and_never_written_again(worker: Worker, artifacts: Path) -> None:
    """OUTPUT_CONFLICT names the file, OUTPUT_MISSING the host that wrote it; put back, all is well again."""
    asked = ask(worker, "s", output="reports/june.md")
    token, file = asked["approval_token"], artifacts / "reports" / "june.md"
    assert approve(worker, "s", token)["success"]
    file.write_text(REPORT + "more", encoding="utf-8")
    for sent in (request("s"), decide("approve", "s", token)):
        answer = worker.request(sent)
        assert (answer["code"], str(file) in answer["error"]) == ("OUTPUT_CONFLICT", True)
    assert file.read_text(encoding="utf-8") == REPORT + "more"
    file.unlink()
    for sent in (request("s"), decide("approve", "s", token)):
        answer = worker.request(sent)
        assert (answer["code"], os.uname().nodename in answer["error"]) == ("OUTPUT_MISSING", True)
    assert not file.exists()
    assert status(worker, "s") == "completed"
    file.write_text(REPORT, encoding="utf-8")
    assert data_of(approve(worker, "s", token))["already_completed"]


def test_a_file_that_stands_is_taken_over_or_left_alone(worker: Worker, artifacts: Path) -> None:
    """With the same bytes it is adopted, untouched; with others the approval waits until a person has looked."""
    artifacts.mkdir(parents=True)
    same, other = artifacts / "same.md", artifacts / "other.md"
    same.write_text(REPORT, encoding="utf-8")
    other.write_text("something else", encoding="utf-8")
    before = same.stat()
    token = ask(worker, "same", output="same.md")["approval_token"]
    assert data_of(approve(worker, "same", token))["already_completed"] is False
    assert (same.stat().st_ino, same.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    token = ask(worker, "other", output="other.md")["approval_token"]
    answer = approve(worker, "other", token)
    assert (answer["code"], str(other) in answer["error"]) == ("OUTPUT_CONFLICT", True)
    assert (other.read_text(encoding="utf-8"), status(worker, "other")) == ("something else", "awaiting-approval")
    other.unlink()
    assert data_of(approve(worker, "other", token))["status"] == "completed"
    assert sorted(path.name for path in artifacts.iterdir()) == ["other.md", "same.md"]


def test_a_yes_that_was_carried_out_stays_a_yes(worker: Worker, artifacts: Path) -> None:
    """The file stands, the record still waits, as after a crash: no expiry, renewal or no undoes the decision."""
    asked = {step: ask(worker, step, expires_in_sec=1) for step in ("late", "no", "renewed")}
    artifacts.mkdir(parents=True)
    for data in asked.values():
        (artifacts / os.path.basename(data["output"])).write_text(REPORT, encoding="utf-8")
    deadline = time.monotonic() + 30
    while not all(ask(worker, step)["expired"] for step in asked):
        assert time.monotonic() < deadline
    late = data_of(approve(worker, "late", asked["late"]["approval_token"], by="Ada"))
    assert (late["status"], late["decided_by"], late["already_completed"]) == ("completed", "Ada", False)
    assert reject(worker, "no", asked["no"]["approval_token"])["code"] == "ALREADY_DECIDED"
    assert status(worker, "no") == "completed"
    renewed = ask(worker, "renewed", renew=True)
    assert (renewed["status"], renewed["verified"]) == ("completed", True)
    assert renewed["approval_token"] == asked["renewed"]["approval_token"]


def test_an_approve_whose_answer_is_lost_is_unknown_and_heals(
    start_worker: StartWorker, database_url: str, sql: Connection, artifacts: Path
) -> None:
    """The connection breaks before the answer and none can be made: PG_WRITE_UNKNOWN; once more, and it is completed."""
    proxy = Proxy(database_url)
    try:
        worker = start_worker({"DATABASE_URL": proxy.url})
        asked = ask(worker, "s")
        proxy.lose_replies()
        assert approve(worker, "s", asked["approval_token"])["code"] == "PG_WRITE_UNKNOWN"
        assert worker.request({"action": "cached_get", **key("s")})["code"] == "PG_READ_ERROR"
    finally:
        proxy.close()
    healed = start_worker()
    assert data_of(approve(healed, "s", asked["approval_token"]))["status"] == "completed"
    assert sql.execute("SELECT revision FROM workflow_checkpoints").fetchall() == [(2,)]
    assert (artifacts / os.path.basename(asked["output"])).read_text(encoding="utf-8") == REPORT


def test_a_backend_that_was_ended_costs_nothing(worker: Worker, sql: Connection, schema: str) -> None:
    """The kept connection is gone between two requests; each of them is carried out once all the same."""
    token = ask(worker, "s")["approval_token"]
    for action, expected in (("request_approval", "awaiting-approval"), ("approve", "completed")):
        ended = sql.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE application_name = 'checkpoint-manager' AND query LIKE %s",
            (f"%{schema}%",),
        ).fetchall()
        assert ended == [(True,)]
        sent: dict[str, Any] = request("s") if action == "request_approval" else decide(action, "s", token)
        data = data_of(worker.request(sent))
        assert (data["status"], data["already_completed"]) == (expected, False)
    assert sql.execute("SELECT revision FROM workflow_checkpoints").fetchall() == [(2,)]


def test_a_decision_that_waits_for_its_row_comes_through_a_break(
    worker: Worker, admin: Connection, sql: Connection, schema: str
) -> None:
    """Its backend is ended while another holds the row: it waits again on a new one, and is carried out once."""
    token = ask(worker, "s")["approval_token"]
    with sql.transaction():
        sql.execute("SELECT FROM workflow_checkpoints FOR UPDATE")
        worker.send(decide("approve", "s", token))
        until(lambda: _waiting(admin, schema), "the approve waits for the row")
        (first,) = _waiting(admin, schema)
        admin.execute("SELECT pg_terminate_backend(%s, 5000)", first)
        until(lambda: _waiting(admin, schema) not in ([], [first]), "it waits again")
    data = data_of(worker.read_line())
    assert (data["status"], data["already_completed"]) == ("completed", False)
    assert sql.execute("SELECT revision FROM workflow_checkpoints").fetchall() == [(2,)]


def test_a_row_that_others_hold_is_given_up_in_time(start_worker: StartWorker, sql: Connection) -> None:
    """PG_WRITE_ERROR after CHECKPOINT_STATEMENT_TIMEOUT, still awaiting, and the same token works when the row is free."""
    worker = start_worker({"CHECKPOINT_STATEMENT_TIMEOUT": "0.5"})
    token = ask(worker, "s")["approval_token"]
    with sql.transaction():
        sql.execute("SELECT FROM workflow_checkpoints FOR UPDATE")
        assert approve(worker, "s", token)["code"] == "PG_WRITE_ERROR"
        assert ask(worker, "s")["status"] == "awaiting-approval"
    assert data_of(approve(worker, "s", token))["already_completed"] is False


def test_without_postgresql_nothing_is_decided(start_offline_worker: StartWorker) -> None:
    """Each action has its code for a server that cannot be reached."""
    worker = start_offline_worker({"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"})
    for sent in (request("s"), decide("approve", "s", "x"), decide("reject", "s", "x")):
        assert worker.request(sent)["code"] == "PG_WRITE_ERROR"
    assert worker.request({"action": "pending"})["code"] == "PG_LIST_ERROR"


def _waiting(admin: Connection, schema: str) -> list[tuple[int]]:
    """The backends that wait for a row of the test's schema."""
    return admin.execute(
        "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s", (f"%{schema}%",)
    ).fetchall()
