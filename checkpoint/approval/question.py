"""What a process asks a person, stored once however often it is asked (contract, section 5, request_approval)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from checkpoint import clock
from checkpoint.approval import place
from checkpoint.approval.desk import OTHER_INPUT, refuse_link
from checkpoint.approval.output import Found
from checkpoint.approval.record import AWAITING, COMPLETED, Approval, micros, read
from checkpoint.errors import OTHER_TENANT, CheckpointError

if TYPE_CHECKING:
    from checkpoint.approval.desk import Desk
    from checkpoint.approval.row import ApprovalChange, ApprovalRow

SECOND = 1_000_000


class Question(msgspec.Struct, frozen=True):
    """Whether `report`, prepared for the input with this hash, may be written to `output`."""

    workflow_id: str
    step_id: str
    tenant_id: str
    input_hash: str
    report: str | None
    output: str | None
    expires_in_sec: int | None
    renew: bool

    def ask(self, desk: Desk) -> dict[str, Any]:
        """What stands, after the question was stored if it is new.

        Raises INVALID_ARG, TENANT_CONFLICT, CORRUPT_STATE, INPUT_CHANGED, and of a completed one OUTPUT_MISSING,
        OUTPUT_CONFLICT, OUTPUT_WRITE_ERROR.
        """
        if self.output is not None:
            _refuse_bad_place(desk, self.output)
        key = (self.workflow_id, self.step_id)
        make = None if self.report is None else lambda now: self._new(desk, now)
        row, created = desk.keep(self.tenant_id, *key, lambda: desk.store.request(*key, self.tenant_id, make))
        if row is not None and self.renew and self._mine(row).expired(row.now):
            row, _ = desk.keep(
                self.tenant_id, *key, lambda: desk.store.change(*key, lambda locked: self._renewed(desk, locked))
            )
        if row is None:
            return self._nothing()
        approval = self._mine(row)
        completed = approval.status == COMPLETED
        if completed:
            desk.verify(row, approval)
        return desk.answer(row, approval, created=created, verified=completed)

    def _mine(self, row: ApprovalRow) -> Approval:
        """The approval in the row, if it is this question's."""
        if row.tenant_id != self.tenant_id:
            raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT)
        approval, _ = read(row)
        if approval.input_hash != self.input_hash:
            raise CheckpointError("INPUT_CHANGED", OTHER_INPUT)
        return approval

    def _new(self, desk: Desk, now: int) -> ApprovalChange:
        report = self.report or ""
        names = (self.tenant_id, self.workflow_id, self.step_id)
        approval = Approval(
            version=1,
            kind="approval",
            input_hash=self.input_hash,
            report=report,
            approval_token=None,
            output=self.output or place.default_output(*names, self.input_hash, report),
            status=AWAITING,
            requested_at="",
            expires_at=None if self.expires_in_sec is None else clock.iso(now + self.expires_in_sec * SECOND),
            decided_at=None,
            decided_by=None,
            reason=None,
        )
        return desk.asked(approval, *names, now)

    def _renewed(self, desk: Desk, row: ApprovalRow | None) -> ApprovalChange | None:
        if row is None:
            return None
        approval = self._mine(row)
        if not approval.expired(row.now) or approval.expires_at is None:
            return None
        completed = desk.completed_where_published(row, approval)
        if completed is not None:  # the answer was yes, and its token must stay
            return completed
        if self.expires_in_sec is None:
            span = micros(approval.expires_at) - micros(approval.requested_at)
        else:
            span = self.expires_in_sec * SECOND
        approval = msgspec.structs.replace(approval, expires_at=clock.iso(row.now + span))
        return desk.asked(approval, row.tenant_id, row.workflow_id, row.step_id, row.now)

    def _nothing(self) -> dict[str, Any]:
        return {
            "workflow_id": self.workflow_id,
            "step_id": self.step_id,
            "tenant_id": self.tenant_id,
            "status": "none",
            "needs_report": True,
            "created": False,
            "input_hash": self.input_hash,
            "approval_token": None,
            "report": None,
            "output": None,
            "verified": False,
            "already_completed": False,
            "already_rejected": False,
            "expired": False,
            "requested_at": None,
            "expires_at": None,
            "decided_at": None,
            "decided_by": None,
            "reason": None,
        }


def _refuse_bad_place(desk: Desk, output: str) -> None:
    """Raises INVALID_ARG. A folder that cannot be seen now may be mended before it is needed."""
    try:
        found = desk.folder.look(output)
    except place.BadPlace as error:
        raise CheckpointError("INVALID_ARG", f"output names no file in the artifacts folder: {error}") from None
    except OSError:
        return
    if found is Found.LINK:
        refuse_link()
