"""A record that something else than the product changed is CORRUPT_STATE, whoever looks at it; nothing is guessed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.approval.asking import approve, ask, data_of, key, reject, request

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

OTHER_HASH = "0" * 64
LATER = "2100-01-01T00:00:00.000000+00:00"

CHANGED_FIELDS: list[dict[str, Any]] = [
    {"report": "another report"},
    {"report": ""},
    {"report": 5},
    {"input_hash": OTHER_HASH},
    {"input_hash": "x"},
    {"output": "../../x"},
    {"output": "/etc/x"},
    {"output": "y"},
    {"approval_token": OTHER_HASH},
    {"approval_token": None},
    {"approval_token": "x"},
    {"requested_at": LATER},
    {"requested_at": "yesterday"},
    {"requested_at": None},
    {"requested_at": "2100-01-01T00:00:00+00:00"},
    {"expires_at": LATER},
    {"status": "completed"},
    {"status": "approved"},
    {"decided_at": LATER},
    {"decided_by": "Mallory"},
    {"reason": "because"},
    {"version": 2},
    {"version": "1"},
    {"kind": "checkpoint"},
    {"extra": 1},
]
CHANGED_TEXTS: list[tuple[str, Callable[[str], str]]] = [
    ("a key is missing", lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "reason"})),
    ("a key is there twice", lambda text: text[:-1] + ',"report":"another"}'),
    ("half a surrogate pair", lambda text: text.replace('"report":"#', '"report":"\\ud800#')),
    ("another object", lambda _: "{}"),
    ("deeply nested", lambda _: '{"report":' + "[" * 5000 + "]" * 5000 + "}"),
]
CHANGED_COLUMNS = [
    "tenant_id = 'acme'",
    "awaiting_since = NULL",
    "kind = 'checkpoint', awaiting_since = NULL",
]


def _codes(worker: Worker, step: str, token: str) -> set[str | None]:
    """The codes of every way to look at the record or to decide it."""
    return {
        worker.request(request(step))["code"],
        worker.request(request(step, report=None))["code"],
        approve(worker, step, token)["code"],
        reject(worker, step, token)["code"],
    }


def test_whatever_was_changed_is_noticed(worker: Worker, sql: Connection, artifacts: Path) -> None:
    """Any value, key or column: CORRUPT_STATE for asking and for deciding, and no file comes about."""
    step, number = "", 0

    def fresh() -> str:
        nonlocal step, number
        number += 1
        step = f"s{number}"
        token: str = ask(worker, step, output="x")["approval_token"]
        return token

    for fields in CHANGED_FIELDS:
        token = fresh()
        _rewrite(sql, step, {**_stored(sql, step), **fields})
        assert _codes(worker, step, token) == {"CORRUPT_STATE"}, fields
    for what, change in CHANGED_TEXTS:
        token = fresh()
        _write(sql, step, change(_text(sql, step)))
        assert _codes(worker, step, token) == {"CORRUPT_STATE"}, what
    for columns in CHANGED_COLUMNS[1:]:
        token = fresh()
        sql.execute(f"UPDATE workflow_checkpoints SET {columns} WHERE step_id = '{step}'")
        assert _codes(worker, step, token) == {"CORRUPT_STATE"}, columns
    token = fresh()
    sql.execute(f"UPDATE workflow_checkpoints SET {CHANGED_COLUMNS[0]} WHERE step_id = '{step}'")
    assert approve(worker, step, token)["code"] == "CORRUPT_STATE"
    assert not artifacts.exists()


def test_a_record_without_a_token_is_watched_too(start_worker: StartWorker, sql: Connection) -> None:
    """With a secret the record holds no token; a change of what the token binds is noticed all the same."""
    worker = start_worker({"CHECKPOINT_APPROVAL_SECRET": "s3cret", "CHECKPOINT_APPROVER": "1"})
    for number, fields in enumerate([{"report": "another"}, {"output": "y"}, {"expires_at": LATER}]):
        step = f"s{number}"
        ask(worker, step, output="x")
        token = _token(worker, step)
        _rewrite(sql, step, {**_stored(sql, step), **fields})
        assert _codes(worker, step, token) == {"CORRUPT_STATE"}, fields


def test_a_decided_record_is_watched_too(worker: Worker, sql: Connection) -> None:
    """A completed record that was made to wait again is not decided a second time."""
    token = ask(worker, "s")["approval_token"]
    assert approve(worker, "s", token)["success"]
    _rewrite(sql, "s", {**_stored(sql, "s"), "status": "awaiting-approval"})
    assert _codes(worker, "s", token) == {"CORRUPT_STATE"}


def test_a_corrupt_one_hides_no_other_from_pending(worker: Worker, sql: Connection) -> None:
    """It is listed as corrupt, with nothing that could be believed; get shows what stands there; delete removes it."""
    token = ask(worker, "bad")["approval_token"]
    good = ask(worker, "good")
    _rewrite(sql, "bad", {**_stored(sql, "bad"), "report": "another report"})
    bad, other = data_of(worker.request({"action": "pending"}))["pending"]
    assert (bad["step_id"], bad["corrupt"], bad["report"], bad["approval_token"]) == ("bad", True, None, None)
    assert (other["step_id"], other["corrupt"], other["approval_token"]) == ("good", False, good["approval_token"])
    assert data_of(worker.request({"action": "get", **key("bad")}))["state_data"]["report"] == "another report"
    assert worker.request({"action": "delete", **key("bad")})["success"]
    assert approve(worker, "bad", token)["code"] == "APPROVAL_NOT_FOUND"


def test_a_record_that_another_program_wrote_rightly_is_as_good(worker: Worker, sql: Connection) -> None:
    """The same JSON, spaced differently, in a row made by an INSERT of its own."""
    asked = ask(worker, "s")
    sql.execute(
        "CREATE TEMP TABLE kept AS SELECT workflow_id, step_id, kind, state_data, awaiting_since FROM workflow_checkpoints"
    )
    sql.execute("DELETE FROM workflow_checkpoints")
    sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, kind, state_data, awaiting_since)"
        " SELECT workflow_id, step_id, kind, state_data::jsonb::text::json, awaiting_since FROM kept"
    )
    assert ask(worker, "s") == {**asked, "created": False}
    assert data_of(approve(worker, "s", asked["approval_token"]))["status"] == "completed"


def _text(sql: Connection, step: str) -> str:
    row = sql.execute("SELECT state_data::text FROM workflow_checkpoints WHERE step_id = %s", (step,)).fetchone()
    assert row is not None
    return str(row[0])


def _stored(sql: Connection, step: str) -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(_text(sql, step))
    return stored


def _rewrite(sql: Connection, step: str, state: dict[str, Any]) -> None:
    _write(sql, step, json.dumps(state))


def _write(sql: Connection, step: str, text: str) -> None:
    sql.execute("UPDATE workflow_checkpoints SET state_data = %s::json WHERE step_id = %s", (text, step))


def _token(worker: Worker, step: str) -> str:
    items = data_of(worker.request({"action": "pending"}))["pending"]
    (token,) = (item["approval_token"] for item in items if item["step_id"] == step)
    return str(token)
