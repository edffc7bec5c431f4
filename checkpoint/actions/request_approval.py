"""`request_approval`: asks a person, once for one input, whether a report may be written (contract, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.approval.arguments import question
from checkpoint.approval.desk import Desk

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """What stands: nothing, so that the report is to be prepared; or the record, new or known."""
    return question(arguments).ask(Desk(runtime))
