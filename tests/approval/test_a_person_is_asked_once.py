"""request_approval: the report of one input is prepared once, stored once, and asked about until it is decided."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from tests.approval.asking import (
    INPUT,
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

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

RECORD = [
    "version", "kind", "input_hash", "report", "approval_token", "output", "status", "requested_at", "expires_at",
    "decided_at", "decided_by", "reason",
]  # fmt: skip


def test_without_a_report_nothing_is_stored(worker: Worker, artifacts: Path) -> None:
    """The caller learns that it has to prepare one, as often as it asks; no row and no folder comes about."""
    for _ in range(2):
        data = ask(worker, "s", report=None)
        assert (data["status"], data["needs_report"], data["created"]) == ("none", True, False)
        assert data["approval_token"] is data["report"] is data["output"] is data["requested_at"] is None
    assert status(worker, "s") is None
    assert not artifacts.exists()


def test_the_question_outlives_the_process_that_asked(start_worker: StartWorker, artifacts: Path) -> None:
    """A later process finds report, token and times as they were, whatever report it has itself."""
    first = data_of(in_a_process_of_its_own(start_worker, request("s")))
    assert (first["status"], first["created"], first["needs_report"]) == ("awaiting-approval", True, False)
    assert (first["report"], first["verified"], first["expired"]) == (REPORT, False, False)
    for report in (REPORT, "another report", None):
        again = data_of(in_a_process_of_its_own(start_worker, request("s", report=report)))
        assert again == {**first, "created": False}
    assert not artifacts.exists()


def test_the_record_is_a_row_like_any_other(worker: Worker) -> None:
    """get, list, cached_get and verify know it; its state has the documented keys, in their order."""
    token = ask(worker, "s")["approval_token"]
    row = worker.request({"action": "get", **key("s")})["data"]
    assert list(row["state_data"]) == RECORD
    assert (row["state_data"]["version"], row["state_data"]["kind"], row["revision"]) == (1, "approval", 1)
    assert worker.request({"action": "cached_get", **key("s")})["data"]["source"] == "sqlite"
    approve(worker, "s", token, by="Ada", reason="fine")
    row = worker.request({"action": "get", **key("s")})["data"]
    assert (row["revision"], row["state_data"]["status"], row["state_data"]["decided_by"]) == (2, "completed", "Ada")
    cached = worker.request({"action": "cached_get", **key("s")})["data"]
    assert (cached["source"], cached["state_data"]) == ("sqlite", row["state_data"])
    listed = worker.request({"action": "list", "workflow_id": "wf"})["data"]
    assert [one["revision"] for one in listed["checkpoints"]] == [2]
    assert worker.request({"action": "verify"})["data"]["consistent"]


def test_many_that_ask_at_one_instant_get_one_report(start_worker: StartWorker) -> None:
    """Five processes with a report each: one is stored, and all are told the same report and token."""
    workers = [start_worker() for _ in range(5)]
    for worker in workers:
        assert worker.request({"action": "pending"})["success"]
    for number, worker in enumerate(workers):
        worker.send(request("s", report=f"report {number}"))
    answers = [data_of(worker.read_line()) for worker in workers]
    assert sorted(answer["created"] for answer in answers) == [False] * 4 + [True]
    assert len({(answer["report"], answer["approval_token"]) for answer in answers}) == 1


def test_a_changed_input_is_told_and_changes_nothing(worker: Worker) -> None:
    """INPUT_CHANGED for every action that names the input, before and after the decision; the record stays."""
    token = ask(worker, "s")["approval_token"]
    other: dict[str, Any] = {"input": {"source": "three"}}
    before = worker.request({"action": "get", **key("s")})["data"]
    for sent in (request("s", **other), decide("approve", "s", token, **other), decide("reject", "s", token, **other)):
        assert worker.request(sent)["code"] == "INPUT_CHANGED"
    assert worker.request({"action": "get", **key("s")})["data"] == before
    assert data_of(approve(worker, "s", token, input=INPUT))["status"] == "completed"
    assert worker.request(request("s", **other))["code"] == "INPUT_CHANGED"
    assert approve(worker, "s", token, input_hash="0" * 64)["code"] == "INPUT_CHANGED"


def test_an_expired_question_is_asked_anew_with_another_token(worker: Worker) -> None:
    """Neither yes nor no counts after the time; `renew` gives the same report a new time and token, the old one is void.

    A renewal that names no time lasts as long as before.
    """
    ask(worker, "same", expires_in_sec=1)
    first = ask(worker, "s", expires_in_sec=1)
    assert _seconds(first) == 1
    assert ask(worker, "s", renew=True) == {**first, "created": False}
    until(lambda: ask(worker, "s")["expired"], "the approval expires")
    for decision in (approve, reject):
        assert decision(worker, "s", first["approval_token"])["code"] == "APPROVAL_EXPIRED"
    expired = ask(worker, "s")
    assert (expired["status"], expired["approval_token"]) == ("awaiting-approval", first["approval_token"])
    renewed = ask(worker, "s", renew=True, expires_in_sec=600, report="not this one")
    assert (renewed["expired"], renewed["created"], renewed["report"]) == (False, False, REPORT)
    assert renewed["approval_token"] != first["approval_token"]
    assert _seconds(renewed) == 600
    assert approve(worker, "s", first["approval_token"])["code"] == "TOKEN_MISMATCH"
    assert data_of(approve(worker, "s", renewed["approval_token"]))["status"] == "completed"
    assert _seconds(ask(worker, "same", renew=True)) == 1


def test_equal_questions_have_different_tokens_and_files(worker: Worker) -> None:
    """Step, workflow, tenant and life of the record are bound, though input and report are equal."""
    tokens, files = set(), set()
    for sent in (
        request("a"),
        request("b"),
        {**request("a"), "workflow_id": "wg"},
        {**request("c"), "tenant_id": "acme"},
    ):
        data = data_of(worker.request(sent))
        tokens.add(data["approval_token"])
        files.add(data["output"])
    assert len(tokens) == len(files) == 4


def test_a_deleted_question_takes_its_token_along(worker: Worker) -> None:
    """After `delete` and the same question again the old token is nobody's."""
    old = ask(worker, "s")
    assert worker.request({"action": "delete", **key("s")})["data"]["deleted_count"] == 1
    assert approve(worker, "s", old["approval_token"])["code"] == "APPROVAL_NOT_FOUND"
    new = ask(worker, "s")
    assert new["output"] == old["output"]
    assert approve(worker, "s", old["approval_token"])["code"] == "TOKEN_MISMATCH"
    assert data_of(approve(worker, "s", new["approval_token"]))["already_completed"] is False


def test_approvals_and_checkpoints_do_not_take_each_others_place(worker: Worker) -> None:
    """A save onto an approval is KIND_CONFLICT; every action of approvals onto a checkpoint is CORRUPT_STATE."""
    ask(worker, "s")
    assert worker.request({"action": "save", **key("s"), "state_data": {}})["code"] == "KIND_CONFLICT"
    assert worker.request({"action": "save", **key("c"), "state_data": {"n": 1}})["success"]
    for sent in (request("c"), request("c", report=None), decide("approve", "c", "x"), decide("reject", "c", "x")):
        assert worker.request(sent)["code"] == "CORRUPT_STATE"
    assert worker.request({"action": "get", **key("c")})["data"]["state_data"] == {"n": 1}


def test_another_tenants_approval_is_not_asked_about_nor_decided(start_worker: StartWorker) -> None:
    """The key is taken (TENANT_CONFLICT); who names or is pinned to another tenant finds no approval."""
    worker = start_worker()
    token = ask(worker, "s", tenant_id="acme")["approval_token"]
    for fields in ({}, {"report": None}, {"tenant_id": "b"}):
        assert worker.request(request("s", **fields))["code"] == "TENANT_CONFLICT"
    pinned = start_worker({"CHECKPOINT_TENANT": "b"})
    for action in ("approve", "reject"):
        assert worker.request(decide(action, "s", token, tenant_id="b"))["code"] == "APPROVAL_NOT_FOUND"
        assert pinned.request(decide(action, "s", token))["code"] == "APPROVAL_NOT_FOUND"
        assert pinned.request(decide(action, "s", token, tenant_id="acme"))["code"] == "TENANT_DENIED"
    assert pinned.request(request("s"))["code"] == "TENANT_CONFLICT"
    assert pinned.request({"action": "pending"})["data"]["pending"] == []
    assert data_of(worker.request(decide("approve", "s", token, tenant_id="acme")))["tenant_id"] == "acme"


def test_prune_leaves_what_waits(worker: Worker, sql: Connection) -> None:
    """However old, a waiting approval stays; a decided one goes like any row."""
    token = ask(worker, "decided")["approval_token"]
    ask(worker, "waits")
    assert approve(worker, "decided", token)["success"]
    sql.execute("UPDATE workflow_checkpoints SET updated_at = now() - interval '1 day'")
    assert worker.request({"action": "prune", "older_than_sec": 60})["data"]["deleted_count"] == 1
    assert (status(worker, "waits"), status(worker, "decided")) == ("awaiting-approval", None)


def test_times_are_answered_in_the_zone_of_the_settings_and_kept_in_utc(start_worker: StartWorker) -> None:
    """The token does not depend on the zone of the process."""
    first = ask(start_worker(), "s", expires_in_sec=60)
    shanghai = start_worker({"CHECKPOINT_TIMEZONE": "Asia/Shanghai"})
    again = ask(shanghai, "s")
    assert again["requested_at"].endswith("+08:00")
    assert _moment(again["requested_at"]) == _moment(first["requested_at"])
    decided = data_of(approve(shanghai, "s", first["approval_token"]))
    assert all(decided[name].endswith("+08:00") for name in ("requested_at", "expires_at", "decided_at"))
    state = shanghai.request({"action": "get", **key("s")})["data"]["state_data"]
    assert all(state[name].endswith("+00:00") for name in ("requested_at", "expires_at", "decided_at"))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _seconds(data: dict[str, Any]) -> float:
    return (_moment(data["expires_at"]) - _moment(data["requested_at"])) / timedelta(seconds=1)
