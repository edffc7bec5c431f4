"""Questions and decisions, out of the arguments of a request (contract, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.approval.canonical import RepeatedKey, canonical_text, digest
from checkpoint.approval.decision import Decision
from checkpoint.approval.question import Question
from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Mapping


def input_hash(arguments: Mapping[str, Any]) -> str | None:
    """The hash given, or that of the input given, or None. Raises INVALID_ARG where the input has no canonical text."""
    if "input" not in arguments:
        given: str | None = arguments.get("input_hash")
        return given
    try:
        return digest(canonical_text(arguments["input"]))
    except RepeatedKey:
        raise CheckpointError("INVALID_ARG", "input gives a key twice in one object; give each key once") from None
    except RecursionError:
        raise CheckpointError("INVALID_ARG", "input is nested too deeply; use fewer levels") from None


def question(arguments: Mapping[str, Any]) -> Question:
    """The question in the arguments of `request_approval`."""
    expires_in_sec = arguments.get("expires_in_sec")
    return Question(
        arguments["workflow_id"],
        arguments["step_id"],
        arguments.get("tenant_id", DEFAULT_TENANT),
        input_hash(arguments) or "",
        arguments.get("report"),
        arguments.get("output"),
        None if expires_in_sec is None else int(expires_in_sec),
        arguments.get("renew", False),
    )


def decision(arguments: Mapping[str, Any]) -> Decision:
    """The decision in the arguments of `approve` or `reject`."""
    return Decision(
        arguments["workflow_id"],
        arguments["step_id"],
        arguments.get("tenant_id"),
        arguments["token"],
        input_hash(arguments),
        arguments.get("by"),
        arguments.get("reason"),
    )
