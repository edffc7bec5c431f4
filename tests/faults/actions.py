"""One request for every action that needs PostgreSQL, and the code that says PostgreSQL failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.worker import Worker

WORKFLOW = "wf"
STEP = "s"
KEY = {"workflow_id": WORKFLOW, "step_id": STEP}
NO_CACHE = {"CHECKPOINT_CACHE_TTL": "0"}  # so that a cached_get needs PostgreSQL


class Asked(NamedTuple):
    """A request, the code of its answer where PostgreSQL cannot be reached, and where it can; None is success."""

    request: Mapping[str, Any]
    without: str | None
    served: str | None = None


NOBODY_ASKED = {**KEY, "step_id": "never asked", "token": "0" * 64}
# In this order each finds what the one before has left.
EVERY_ACTION: dict[str, Asked] = {
    "save": Asked({**KEY, "state_data": {"n": 1}}, "PG_WRITE_ERROR"),
    "get": Asked(KEY, "PG_READ_ERROR"),
    "list": Asked({"workflow_id": WORKFLOW}, "PG_LIST_ERROR"),
    "workflows": Asked({}, "PG_LIST_ERROR"),
    "cache": Asked({**KEY, "step_id": "only cached", "state_data": {}}, None),
    "cached_get": Asked(KEY, "PG_READ_ERROR"),
    "rebuild": Asked({}, "REBUILD_FAILED"),
    "verify": Asked({}, "VERIFY_FAILED"),
    "request_approval": Asked({**KEY, "step_id": "asked", "input": {}, "report": "a report"}, "PG_WRITE_ERROR"),
    "pending": Asked({}, "PG_LIST_ERROR"),
    "approve": Asked(NOBODY_ASKED, "PG_WRITE_ERROR", "APPROVAL_NOT_FOUND"),
    "reject": Asked(NOBODY_ASKED, "PG_WRITE_ERROR", "APPROVAL_NOT_FOUND"),
    "prune": Asked({"older_than_sec": 3600}, "PG_WRITE_ERROR"),
    "delete": Asked({"workflow_id": WORKFLOW, "all_steps": True}, "PG_WRITE_ERROR"),
    "healthcheck": Asked({}, None),
}
READS = ("get", "list", "workflows", "cached_get", "rebuild", "verify", "pending", "healthcheck")


def ask(worker: Worker, action: str) -> dict[str, Any]:
    """The response to the request of that action."""
    return worker.request({"action": action, **EVERY_ACTION[action].request})


def works(worker: Worker, action: str) -> dict[str, Any]:
    """The same, held to what it is where PostgreSQL serves."""
    answer = ask(worker, action)
    assert answer["code"] == EVERY_ACTION[action].served, f"{action}: {answer}"
    return answer


def fails(worker: Worker, action: str) -> dict[str, Any]:
    """The same, held to what it is where PostgreSQL does not serve and was not sent anything."""
    answer = ask(worker, action)
    assert answer["code"] == EVERY_ACTION[action].without, f"{action}: {answer}"
    return answer


def save(worker: Worker, n: int, **fields: object) -> dict[str, Any]:
    """The response to a save of the state {"n": n}."""
    return worker.request({"action": "save", **KEY, "state_data": {"n": n}, **fields})


def serves(worker: Worker) -> None:
    """Holds a worker to serving reads and writes: a save of its own, the get after it, a good healthcheck."""
    saved = worker.request({"action": "save", "workflow_id": "afterwards", "step_id": STEP, "state_data": {"up": True}})
    assert saved["success"], saved
    got = worker.request({"action": "get", "workflow_id": "afterwards", "step_id": STEP})
    assert got["success"], got
    assert got["data"]["state_data"] == {"up": True}
    assert got["data"]["revision"] == saved["data"]["revision"]
    health = worker.request({"action": "healthcheck"})["data"]["pg"]
    assert health["ok"], health
    assert health["writable"]
