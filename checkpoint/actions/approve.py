"""`approve`: a person says yes; the report is written and the record completed (contract, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.approval.arguments import decision
from checkpoint.approval.desk import Desk

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """The record, completed now or before; its output file is there."""
    return decision(arguments).approve(Desk(runtime))
