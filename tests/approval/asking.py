"""Requests about one approval, as a host sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

WORKFLOW = "wf"
INPUT = {"source": "one\ntwo\n"}
REPORT = "# Report\n\nTwo lines.\n"


def key(step: str) -> dict[str, str]:
    """The ids of an approval."""
    return {"workflow_id": WORKFLOW, "step_id": step}


def request(step: str, **fields: Any) -> dict[str, Any]:
    """`request_approval` for the usual input and report; `fields` change that, None takes one away."""
    return {"action": "request_approval", **key(step), "input": INPUT, "report": REPORT, **fields}


def decide(action: str, step: str, token: str, **fields: Any) -> dict[str, Any]:
    """`approve` or `reject` with a token."""
    return {"action": action, **key(step), "token": token, **fields}


def ask(worker: Worker, step: str, **fields: Any) -> dict[str, Any]:
    """The data of a `request_approval` that succeeds."""
    return data_of(worker.request(request(step, **fields)))


def approve(worker: Worker, step: str, token: str, **fields: Any) -> dict[str, Any]:
    """The response to an `approve`."""
    return worker.request(decide("approve", step, token, **fields))


def reject(worker: Worker, step: str, token: str, **fields: Any) -> dict[str, Any]:
    """The response to a `reject`."""
    return worker.request(decide("reject", step, token, **fields))


def status(worker: Worker, step: str) -> str | None:
    """The status of the record as PostgreSQL has it; None where there is none."""
    data = data_of(worker.request({"action": "get", **key(step)}))
    found: str | None = data["state_data"]["status"] if data["found"] else None
    return found


def data_of(response: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a success."""
    assert response["success"], response
    data: dict[str, Any] = response["data"]
    return data


def in_a_process_of_its_own(
    start_worker: StartWorker, sent: Mapping[str, Any], env: Mapping[str, str | None] | None = None
) -> dict[str, Any]:
    """The response of a runner that is started for this request alone and ends after it."""
    worker = start_worker(env)
    worker.send(sent)
    (response,) = worker.finish()
    return response
