"""With CHECKPOINT_APPROVAL_SECRET the process that asked never sees the token; an approver's process does."""

from __future__ import annotations

import hashlib
import hmac
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tests.approval.asking import approve, ask, data_of, key, reject, request
from tests.support.environment import worker_environment
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

SECRET = {"CHECKPOINT_APPROVAL_SECRET": "correct horse battery staple"}
APPROVER = {**SECRET, "CHECKPOINT_APPROVER": "1"}


def _tokens(worker: Worker) -> list[str | None]:
    return [item["approval_token"] for item in data_of(worker.request({"action": "pending"}))["pending"]]


def _plain(worker: Worker, step: str) -> str:
    """The token that anybody can compute from the record."""
    state = data_of(worker.request({"action": "get", **key(step)}))["state_data"]
    bound = {
        "expiresAt": state["expires_at"],
        "inputHash": state["input_hash"],
        "output": state["output"],
        "report": state["report"],
        "requestedAt": state["requested_at"],
        "stepId": step,
        "tenantId": "default",
        "workflowId": "wf",
    }
    text = json.dumps(bound, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def test_only_an_approver_is_shown_the_token(start_worker: StartWorker, folder: Path, sql: Connection) -> None:
    """Not by request_approval, get, list, cached_get, pending, the cache file or the table; by pending with the setting."""
    worker, approver = start_worker(SECRET), start_worker(APPROVER)
    assert ask(worker, "s")["approval_token"] is None
    assert ask(worker, "s")["approval_token"] is None
    assert _tokens(worker) == [None]
    (token,) = _tokens(approver)
    assert token is not None
    assert ask(approver, "s")["approval_token"] is None
    for sent in (
        {"action": "get", **key("s")},
        {"action": "list", "workflow_id": "wf"},
        {"action": "cached_get", **key("s")},
        request("s", renew=True),
    ):
        for one in (worker, approver):
            assert one.request(sent)["success"]
            assert token.encode() not in one.raw[-1]
            assert b'"approval_token":null' in one.raw[-1]
    done = data_of(approve(worker, "s", token, by="Ada"))
    assert (done["status"], done["approval_token"]) == ("completed", None)
    stored = "".join(str(row) for row in sql.execute("SELECT * FROM workflow_checkpoints").fetchall())
    assert token not in stored
    assert not [path for path in folder.rglob("*") if path.is_file() and token.encode() in path.read_bytes()]


def test_a_token_computed_without_the_secret_is_refused(start_worker: StartWorker) -> None:
    """Neither the plain digest nor one under another secret decides anything, in whatever process it is tried."""
    worker = start_worker(SECRET)
    ask(worker, "s")
    forged = [_plain(worker, "s"), hmac.new(b"guess", _plain(worker, "s").encode(), "sha256").hexdigest(), "null"]
    without, other = start_worker(), start_worker({"CHECKPOINT_APPROVAL_SECRET": "another"})
    for one in (worker, without, other):
        for token in forged:
            assert approve(one, "s", token)["code"] == "TOKEN_MISMATCH"
            assert reject(one, "s", token)["code"] == "TOKEN_MISMATCH"
    assert _tokens(without) == [None]
    assert ask(without, "s")["approval_token"] is None
    (shown,) = _tokens(start_worker(APPROVER))
    assert data_of(approve(worker, "s", str(shown)))["status"] == "completed"


def test_an_open_token_does_not_open_what_a_secret_guards(start_worker: StartWorker) -> None:
    """An approval asked for before there was a secret is decided with the secret's token from then on."""
    old = ask(start_worker(), "s")["approval_token"]
    worker, approver = start_worker(SECRET), start_worker(APPROVER)
    assert ask(worker, "s")["approval_token"] is None
    assert approve(worker, "s", old)["code"] == "TOKEN_MISMATCH"
    (token,) = _tokens(approver)
    assert data_of(approve(worker, "s", str(token)))["status"] == "completed"


def test_a_secret_can_be_exchanged_while_approvals_wait(start_worker: StartWorker) -> None:
    """Tokens of the previous secret are accepted while it is set, new ones are shown; afterwards they are void."""
    first = start_worker(APPROVER)
    for step in ("a", "b"):
        ask(first, step)
    old = [str(token) for token in _tokens(first)]
    new = {"CHECKPOINT_APPROVAL_SECRET": "new", "CHECKPOINT_APPROVER": "1"}
    both = start_worker({**new, "CHECKPOINT_APPROVAL_SECRET_PREVIOUS": SECRET["CHECKPOINT_APPROVAL_SECRET"]})
    assert data_of(approve(both, "a", old[0]))["status"] == "completed"
    (shown,) = _tokens(both)
    assert shown != old[1]
    after = start_worker(new)
    assert approve(after, "b", old[1])["code"] == "TOKEN_MISMATCH"
    assert _tokens(after) == [shown]
    assert data_of(approve(after, "b", str(shown)))["status"] == "completed"


def test_settings_that_cannot_be_meant_end_the_start(folder: Path) -> None:
    """One line that names the variable, exit status 2, and no secret in it."""
    for settings, named in (
        ({"CHECKPOINT_APPROVER": "yes"}, "CHECKPOINT_APPROVER"),
        ({"CHECKPOINT_APPROVAL_SECRET_PREVIOUS": "hunter2"}, "CHECKPOINT_APPROVAL_SECRET_PREVIOUS"),
    ):
        env = worker_environment({"CHECKPOINT_DATA_DIR": str(folder), **settings})
        command: list[Any] = [sys.executable, str(RUNNER)]
        ended = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
        assert named in ended.stderr
        assert "hunter2" not in ended.stderr
