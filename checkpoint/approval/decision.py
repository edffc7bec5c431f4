"""What a person decides, carried out once under the lock of the record (contract, section 5, approve and reject)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from checkpoint.approval.desk import OTHER_INPUT
from checkpoint.approval.record import COMPLETED, REJECTED, Approval, read
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint.approval.desk import Desk
    from checkpoint.approval.row import ApprovalChange, ApprovalRow


class Decision(msgspec.Struct, frozen=True):
    """Who decides, why, with which token, and on which input if that is known. `tenant_id` narrows as in a read."""

    workflow_id: str
    step_id: str
    tenant_id: str | None
    token: str
    input_hash: str | None
    by: str | None
    reason: str | None

    def approve(self, desk: Desk) -> dict[str, Any]:
        """Publishes the output file and completes the record, in one transaction; or finds it completed.

        Raises APPROVAL_NOT_FOUND, CORRUPT_STATE, TOKEN_MISMATCH, INPUT_CHANGED, ALREADY_DECIDED, APPROVAL_EXPIRED,
        OUTPUT_CONFLICT, OUTPUT_MISSING, OUTPUT_WRITE_ERROR; the record is as it was then, and its token too.
        """

        def judge(row: ApprovalRow | None) -> ApprovalChange | None:
            row, approval = self._admitted(desk, row)
            if approval.status == REJECTED:
                raise CheckpointError("ALREADY_DECIDED", "it was rejected before; ask again under other ids")
            if approval.status == COMPLETED:
                desk.verify(row, approval)
                return None
            if approval.expired(row.now) and not desk.published(approval):
                _refuse_expired()
            desk.publish(approval)
            return desk.decided(row, approval, COMPLETED, self.by, self.reason)

        row, approval, changed = self._carried_out(desk, judge)
        return desk.answer(row, approval, verified=True, already_completed=not changed)

    def reject(self, desk: Desk) -> dict[str, Any]:
        """Closes the record without a file. Where the file stands already the answer was yes, and that is recorded.

        Raises what `approve` raises.
        """

        def judge(row: ApprovalRow | None) -> ApprovalChange | None:
            row, approval = self._admitted(desk, row)
            if approval.status == COMPLETED:
                raise CheckpointError("ALREADY_DECIDED", "it was approved before, and its output is published")
            if approval.status == REJECTED:
                return None
            completed = desk.completed_where_published(row, approval)
            if completed is None and approval.expired(row.now):
                _refuse_expired()
            return completed or desk.decided(row, approval, REJECTED, self.by, self.reason)

        row, approval, changed = self._carried_out(desk, judge)
        if approval.status == COMPLETED:
            raise CheckpointError("ALREADY_DECIDED", "its output was published before; the record is completed now")
        return desk.answer(row, approval, already_rejected=not changed)

    def _admitted(self, desk: Desk, row: ApprovalRow | None) -> tuple[ApprovalRow, Approval]:
        """The approval that this is about, if token and input fit."""
        if row is None or self.tenant_id not in (None, row.tenant_id):
            raise CheckpointError(
                "APPROVAL_NOT_FOUND",
                "no approval stands under this workflow_id and step_id, or it is another tenant's; "
                "pending lists what waits",
            )
        approval, bound = read(row)
        if not desk.tokens.accepts(self.token, approval, bound):
            raise CheckpointError("TOKEN_MISMATCH", "token is not the one of this approval; nothing was used up")
        if self.input_hash not in (None, approval.input_hash):
            raise CheckpointError("INPUT_CHANGED", OTHER_INPUT)
        return row, approval

    def _carried_out(
        self, desk: Desk, judge: Callable[[ApprovalRow | None], ApprovalChange | None]
    ) -> tuple[ApprovalRow, Approval, bool]:
        key = (self.workflow_id, self.step_id)
        row, changed = desk.keep(self.tenant_id, *key, lambda: desk.store.change(*key, judge))
        if row is None:
            raise AssertionError("a decision about nothing was let through")
        return row, read(row)[0], changed


def _refuse_expired() -> NoReturn:
    raise CheckpointError(
        "APPROVAL_EXPIRED", "its time to be decided is over; request_approval with renew true asks anew"
    )
