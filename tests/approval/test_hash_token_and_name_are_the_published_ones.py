"""Hashes, tokens and default names are those that tests/contract/vectors publishes for other languages."""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint.approval.canonical import canonical, digest
from checkpoint.approval.place import default_output
from tests.approval.asking import ask, key, request

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.worker import Worker

VECTORS = Path(__file__).resolve().parents[1] / "contract" / "vectors"
JSON = json.loads((VECTORS / "canonical_json.json").read_text(encoding="utf-8"))
TOKENS = json.loads((VECTORS / "approval_tokens.json").read_text(encoding="utf-8"))
SECRET = "correct horse battery staple"


def _with_input(text: str) -> bytes:
    return b'{"action":"request_approval","workflow_id":"wf","step_id":"s","input":' + text.encode() + b"}\n"


def test_the_hash_of_an_input_is_the_published_one(worker: Worker) -> None:
    """Every accepted vector, through a runner: keys sorted, number tokens as sent, the shortest escapes."""
    for vector in JSON["accepted"]:
        assert hashlib.sha256(vector["canonical"].encode()).hexdigest() == vector["sha256"], vector["about"]
        worker.send_raw(_with_input(vector["json"]))
        assert worker.read_line()["data"]["input_hash"] == vector["sha256"], vector["about"]


def test_an_input_without_one_meaning_is_refused(worker: Worker) -> None:
    """A key twice in one object is INVALID_ARG, however deep and however escaped; the message names the field."""
    for vector in JSON["refused"]:
        worker.send_raw(_with_input(vector["json"]))
        answer = worker.read_line()
        assert (answer["code"], "input" in answer["error"]) == ("INVALID_ARG", True), vector["about"]


def test_an_input_may_be_nested_as_deeply_as_a_line(worker: Worker) -> None:
    """500 levels are hashed; what is too deep is an answer, not the end of the process."""
    for levels in (500, 900):
        deep = "[" * levels + "]" * levels
        worker.send_raw(_with_input(deep))
        assert worker.read_line()["data"]["input_hash"] == hashlib.sha256(deep.encode()).hexdigest()
    worker.send_raw(_with_input("[" * 5000 + "]" * 5000))
    assert worker.read_line()["code"] == "INVALID_JSON"
    assert worker.request({"action": "pending"})["success"]


@pytest.mark.parametrize("vector", TOKENS["tokens"])
def test_a_token_is_the_published_one(vector: dict[str, Any]) -> None:
    """The canonical text of what is bound, its SHA-256, and its HMAC under a secret."""
    text = canonical(vector["bound"])
    assert text.decode() == vector["canonical"]
    assert digest(text) == vector["sha256"]
    assert hmac.new(vector["secret"].encode(), text, "sha256").hexdigest() == vector["hmac_sha256"]


@pytest.mark.parametrize("vector", TOKENS["outputs"])
def test_a_default_name_is_the_published_one(vector: dict[str, Any]) -> None:
    """The readable part and the digest."""
    assert default_output(*vector["named_by"]) == vector["output"]


def test_a_runner_binds_what_it_says_it_binds(start_worker: StartWorker) -> None:
    """The token of a stored record can be computed from that record alone; with a secret as an HMAC."""
    worker = start_worker({"CHECKPOINT_TIMEZONE": "Asia/Shanghai"})
    token = ask(worker, "s", expires_in_sec=3600, tenant_id="acme")["approval_token"]
    state = worker.request({"action": "get", **key("s")})["data"]["state_data"]
    text = _bound(state, "acme")
    assert token == state["approval_token"] == hashlib.sha256(text).hexdigest()
    approver = start_worker({"CHECKPOINT_APPROVAL_SECRET": SECRET, "CHECKPOINT_APPROVER": "1"})
    (item,) = approver.request({"action": "pending"})["data"]["pending"]
    assert item["approval_token"] == hmac.new(SECRET.encode(), text, "sha256").hexdigest()


def test_the_same_input_is_known_by_value_and_by_hash(worker: Worker) -> None:
    """White space and the order of keys make no difference; the hash may be sent in place of the input."""
    first = ask(worker, "s", input={"a": 1, "b": 2})
    worker.send_raw(_with_input('{ "b": 2, "a": 1 }'))
    assert worker.read_line()["data"]["status"] == "awaiting-approval"
    assert ask(worker, "s", input=None, input_hash=first["input_hash"])["status"] == "awaiting-approval"
    worker.send_raw(_with_input('{"a": 1.0, "b": 2}'))
    assert worker.read_line()["code"] == "INPUT_CHANGED"


NO_QUESTIONS: list[tuple[dict[str, Any], str]] = [
    ({"input": None}, "input_hash"),
    ({"input_hash": "0" * 64}, "input"),
    ({"input": None, "input_hash": "0" * 63}, "input_hash"),
    ({"input": None, "input_hash": "A" * 64}, "input_hash"),
    ({"input": None, "input_hash": "0" * 64 + "\n"}, "input_hash"),
    ({"report": ""}, "report"),
    ({"report": 5}, "report"),
    ({"expires_in_sec": 0}, "expires_in_sec"),
    ({"expires_in_sec": 1.5}, "expires_in_sec"),
    ({"renew": "yes"}, "renew"),
    ({"tokn": "x"}, "tokn"),
    ({"step_id": ""}, "step_id"),
]


def test_a_question_that_is_not_one_is_refused(offline_worker: Worker) -> None:
    """INVALID_ARG names the field, before any database is asked for; a whole one gets as far as that."""
    for fields, named in NO_QUESTIONS:
        answer = offline_worker.request(request("s", **fields))
        assert (answer["code"], named in answer["error"]) == ("INVALID_ARG", True), fields
    assert offline_worker.request(request("s"))["code"] == "DB_NOT_CONFIGURED"


def _bound(state: dict[str, Any], tenant: str) -> bytes:
    bound = {
        "expiresAt": state["expires_at"],
        "inputHash": state["input_hash"],
        "output": state["output"],
        "report": state["report"],
        "requestedAt": state["requested_at"],
        "stepId": "s",
        "tenantId": tenant,
        "workflowId": "wf",
    }
    return json.dumps(bound, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
