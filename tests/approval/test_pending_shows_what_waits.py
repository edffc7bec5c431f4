"""pending: what waits for a person, first asked first, each exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.approval.asking import approve, ask, data_of, reject

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker


def _pending(worker: Worker, **fields: Any) -> dict[str, Any]:
    return data_of(worker.request({"action": "pending", **fields}))


def _steps(page: dict[str, Any]) -> list[str]:
    return [item["step_id"] for item in page["pending"]]


def test_only_what_waits_is_listed_and_says_what_is_decided(worker: Worker) -> None:
    """An item has what a person needs to decide; decided ones are gone."""
    assert _pending(worker) == {"tenant_id": None, "pending": [], "count": 0, "next_cursor": None}
    asked = {step: ask(worker, step, expires_in_sec=600) for step in ("no", "yes", "open")}
    assert approve(worker, "yes", asked["yes"]["approval_token"])["success"]
    assert reject(worker, "no", asked["no"]["approval_token"])["success"]
    page = _pending(worker)
    assert (_steps(page), page["count"]) == (["open"], 1)
    (item,) = page["pending"]
    shared = {name: value for name, value in asked["open"].items() if name in item}
    assert item == {**shared, "corrupt": False}
    assert {"report", "output", "approval_token", "requested_at", "expires_at", "expired"} <= set(shared)


def test_pages_give_each_once_though_others_are_decided_meanwhile(worker: Worker) -> None:
    """First asked first; a cursor continues where the page ended and fits only the same tenant."""
    tokens = {f"s{number}": ask(worker, f"s{number}")["approval_token"] for number in range(7)}
    seen, cursor = [], None
    while True:
        page = _pending(worker, limit=3, cursor=cursor)
        seen += _steps(page)
        for step in _steps(page)[:2]:
            assert approve(worker, step, tokens[step])["success"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        wrong = worker.request({"action": "pending", "cursor": cursor, "tenant_id": "acme"})
        assert (wrong["code"], "cursor" in wrong["error"]) == ("INVALID_ARG", True)
    assert seen == list(tokens)
    assert _steps(_pending(worker)) == ["s2", "s5"]
    for limit in (0, 10001, 1.5, "3"):
        assert worker.request({"action": "pending", "limit": limit})["code"] == "INVALID_ARG"


def test_a_page_is_bounded_in_bytes(worker: Worker, sql: Connection) -> None:
    """Records of 30 MB each: two of them make a page, whatever its limit."""
    _pending(worker)
    sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, kind, awaiting_since, state_data)"
        " SELECT 'wf', 's' || n, 'approval', now(), ('{\"x\":\"' || repeat('x', 30000000) || '\"}')::json"
        " FROM generate_series(0, 2) AS n"
    )
    page = _pending(worker)
    assert (page["count"], page["next_cursor"] is None) == (2, False)
    assert _steps(_pending(worker, cursor=page["next_cursor"])) == ["s2"]


def test_a_tenant_sees_its_own(start_worker: StartWorker) -> None:
    """Named, pinned or not named: one tenant, the process's tenant, or all."""
    worker = start_worker()
    ask(worker, "a", tenant_id="acme")
    ask(worker, "b")
    assert _steps(_pending(worker)) == ["a", "b"]
    assert _steps(_pending(worker, tenant_id="")) == ["a", "b"]
    assert _steps(_pending(worker, tenant_id="acme")) == ["a"]
    pinned = start_worker({"CHECKPOINT_TENANT": "acme"})
    assert _steps(_pending(pinned)) == ["a"]
    assert pinned.request({"action": "pending", "tenant_id": "default"})["code"] == "TENANT_DENIED"
