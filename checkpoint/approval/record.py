"""The record of an approval: JSON in its row, checked in full before it is believed (contract, section 5)."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Final, Literal, NoReturn

import msgspec

from checkpoint import clock
from checkpoint.approval import place
from checkpoint.approval.canonical import RepeatedKey, canonical, digest, object_of
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from checkpoint.approval.row import ApprovalRow

AWAITING: Final = "awaiting-approval"
COMPLETED: Final = "completed"
REJECTED: Final = "rejected"

Sha256 = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}\Z")]
Text = Annotated[str, msgspec.Meta(min_length=1)]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`state_data` of an approval, in the order in which it is stored. Times are ISO 8601 in UTC, with microseconds.

    `approval_token` is null where a secret makes the token. `output` is relative to the artifacts folder.
    """

    version: Literal[1]
    kind: Literal["approval"]
    input_hash: Sha256
    report: Text
    approval_token: Sha256 | None
    output: Text
    status: Literal["awaiting-approval", "completed", "rejected"]
    requested_at: str
    expires_at: str | None
    decided_at: str | None
    decided_by: str | None
    reason: str | None

    def bound(self, tenant_id: str, workflow_id: str, step_id: str) -> bytes:
        """The canonical text of what a decision is about; the token is taken over it."""
        return canonical(
            {
                "expiresAt": self.expires_at,
                "inputHash": self.input_hash,
                "output": self.output,
                "report": self.report,
                "requestedAt": self.requested_at,
                "stepId": step_id,
                "tenantId": tenant_id,
                "workflowId": workflow_id,
            }
        )

    def expired(self, now: int) -> bool:
        """Whether it waits and its time is over at `now`, in microseconds since the epoch."""
        return self.status == AWAITING and self.expires_at is not None and now >= micros(self.expires_at)

    def text(self) -> bytes:
        """The JSON that is stored."""
        return msgspec.json.encode(self)


def micros(moment: str) -> int:
    """Microseconds since the epoch of a stored moment. Raises ValueError where it is not spelt as it is stored."""
    parsed = (datetime.fromisoformat(moment) - _EPOCH) // timedelta(microseconds=1)
    if clock.iso(parsed) != moment:
        raise ValueError
    return parsed


def read(row: ApprovalRow) -> tuple[Approval, bytes]:
    """The approval in a row and the text that its token binds.

    Raises CORRUPT_STATE unless the row is an approval of exactly the shape that is stored, its columns say the same,
    and its token, or without one the digest beside it, is that of its own content. Nothing is guessed.
    """
    if row.kind != "approval":
        _corrupt("an ordinary checkpoint stands under this workflow_id and step_id, not an approval")
    try:
        approval = msgspec.convert(json.loads(row.state_data, object_pairs_hook=object_of), Approval)
        bound = approval.bound(row.tenant_id, row.workflow_id, row.step_id)
        _check(approval, row)
    except (ValueError, TypeError, OverflowError, RecursionError, msgspec.ValidationError, RepeatedKey):
        _corrupt("the approval was changed by something else and does not have its shape any more")
    beside = None if row.content_sha256 is None else row.content_sha256.hex()
    if {approval.approval_token, beside} != {None, digest(bound)}:
        _corrupt("the approval was changed by something else; its token is not that of its content")
    return approval, bound


def _check(approval: Approval, row: ApprovalRow) -> None:
    """Raises ValueError where parts of the record contradict each other or its columns."""
    waits = approval.status == AWAITING
    decision = (approval.decided_at, approval.decided_by, approval.reason)
    for moment in (approval.requested_at, approval.expires_at, approval.decided_at):
        if moment is not None:
            micros(moment)
    place.parts(approval.output)
    approval.text()
    if waits != (row.awaiting_since is not None) or waits != (approval.decided_at is None):
        raise ValueError
    if waits and decision != (None, None, None):
        raise ValueError
    requested_at = micros(approval.requested_at)
    if waits and row.awaiting_since != requested_at:
        raise ValueError
    if approval.expires_at is not None and micros(approval.expires_at) <= requested_at:
        raise ValueError


def _corrupt(what: str) -> NoReturn:
    raise CheckpointError("CORRUPT_STATE", f"{what}; look at it with get, then delete it or take other ids")
