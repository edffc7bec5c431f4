"""`request_approval`: asks a person, once for one input, whether a report may be written (contract, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.actions import DEFAULT_TENANT
from checkpoint.approval.arguments import input_hash
from checkpoint.approval.desk import Desk
from checkpoint.approval.question import Question

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """What stands: nothing, so that the report is to be prepared; or the record, new or known."""
    expires_in_sec = arguments.get("expires_in_sec")
    question = Question(
        arguments["workflow_id"],
        arguments["step_id"],
        arguments.get("tenant_id", DEFAULT_TENANT),
        input_hash(arguments) or "",
        arguments.get("report"),
        arguments.get("output"),
        None if expires_in_sec is None else int(expires_in_sec),
        arguments.get("renew", False),
    )
    return question.ask(Desk(runtime))
