"""What asking and deciding share: tokens, output folder, how a change is made and answered (contract, section 5)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from checkpoint import clock
from checkpoint.approval.canonical import digest
from checkpoint.approval.output import Found, OutputFolder
from checkpoint.approval.record import AWAITING, COMPLETED, Approval, micros, read
from checkpoint.approval.row import ApprovalChange
from checkpoint.approval.token import Tokens
from checkpoint.errors import CheckpointError
from checkpoint.record import instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint.approval.row import ApprovalRow
    from checkpoint.authority.approvals import ApprovalStore
    from checkpoint.record import Instant
    from checkpoint.runtime import Runtime

    Outcome = tuple[ApprovalRow | None, bool]

OTHER_INPUT = (
    "the input is not the one that the report was prepared for; take other ids for it, or delete the record first"
)


class Desk:
    """The approvals of one process."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.folder = OutputFolder(runtime.settings.artifacts_dir)
        self.tokens = Tokens(runtime.settings)

    @property
    def store(self) -> ApprovalStore:
        """Approvals in PostgreSQL. Raises DB_NOT_CONFIGURED."""
        return self._runtime.authority.approvals

    def keep(self, tenant_id: str | None, workflow_id: str, step_id: str, work: Callable[[], Outcome]) -> Outcome:
        """What `work` left under the key and whether it changed it, with the cache told of it."""
        asked_at = clock.now_ms()
        try:
            row, changed = work()
        except CheckpointError as error:
            if error.code == "PG_WRITE_UNKNOWN":
                self._runtime.cache.drop(tenant_id, workflow_id, step_id)
            raise
        if row is not None and changed:
            self._runtime.cache_records((row.record(),), asked_at)
        return row, changed

    def asked(
        self, approval: Approval, tenant_id: str, workflow_id: str, step_id: str, asked_at: int
    ) -> ApprovalChange:
        """The change that asks a person, from `asked_at` (microseconds) on, with the token of this very question."""
        approval = msgspec.structs.replace(approval, requested_at=clock.iso(asked_at))
        bound = approval.bound(tenant_id, workflow_id, step_id)
        token = self.tokens.stored(bound)
        approval = msgspec.structs.replace(approval, approval_token=token)
        return ApprovalChange(approval.text(), asked_at, bytes.fromhex(digest(bound)) if token is None else None)

    def decided(
        self,
        row: ApprovalRow,
        approval: Approval,
        status: str,
        by: str | None = None,
        reason: str | None = None,
    ) -> ApprovalChange:
        """The change that records a decision, at PostgreSQL's time."""
        approval = msgspec.structs.replace(
            approval, status=status, decided_at=clock.iso(row.now), decided_by=by, reason=reason
        )
        host = os.uname().nodename if status == COMPLETED else None
        return ApprovalChange(approval.text(), None, row.content_sha256, host)

    def completed_where_published(self, row: ApprovalRow, approval: Approval) -> ApprovalChange | None:
        """The change that completes a record whose output file stands already; None where none does.

        The decision was yes then, and only its record is missing. By whom is not known any more.
        """
        if not self.published(approval):
            return None
        self.publish(approval)
        return self.decided(row, approval, COMPLETED)

    def published(self, approval: Approval) -> bool:
        """Whether the output file stands. Raises OUTPUT_WRITE_ERROR where that cannot be seen."""
        try:
            return self.folder.look(approval.output, approval.report.encode()) is Found.THE_SAME
        except OSError as error:
            self._unusable(approval, error)

    def publish(self, approval: Approval) -> None:
        """Writes the output file, or takes over the same. Raises OUTPUT_CONFLICT, OUTPUT_WRITE_ERROR, INVALID_ARG."""
        try:
            found = self.folder.publish(approval.output, approval.report.encode())
        except OSError as error:
            self._unusable(approval, error)
        if found is Found.LINK:
            refuse_link()
        if found is not Found.THE_SAME:
            self._conflict(approval)

    def verify(self, row: ApprovalRow, approval: Approval) -> None:
        """Compares the file of a completed record. Raises OUTPUT_MISSING, OUTPUT_CONFLICT, OUTPUT_WRITE_ERROR."""
        try:
            found = self.folder.look(approval.output, approval.report.encode())
        except OSError as error:
            self._unusable(approval, error)
        if found is Found.NOTHING:
            host = row.published_on or "(not recorded)"
            raise CheckpointError(
                "OUTPUT_MISSING",
                f"{self.folder.path(approval.output)} is gone; it was published on the host {host}. "
                "Put it back, or delete the record and ask again",
            )
        if found is not Found.THE_SAME:
            self._conflict(approval)

    def answer(
        self,
        row: ApprovalRow,
        approval: Approval,
        *,
        created: bool = False,
        verified: bool = False,
        already_completed: bool = False,
        already_rejected: bool = False,
    ) -> dict[str, Any]:
        """The data of an answer about a record that stands."""
        return {
            "workflow_id": row.workflow_id,
            "step_id": row.step_id,
            "tenant_id": row.tenant_id,
            "status": approval.status,
            "needs_report": False,
            "created": created,
            "input_hash": approval.input_hash,
            "approval_token": self.tokens.for_requester(approval),
            "report": approval.report,
            "output": self.folder.path(approval.output),
            "verified": verified,
            "already_completed": already_completed,
            "already_rejected": already_rejected,
            "expired": approval.expired(row.now),
            "requested_at": moment(approval.requested_at),
            "expires_at": moment(approval.expires_at),
            "decided_at": moment(approval.decided_at),
            "decided_by": approval.decided_by,
            "reason": approval.reason,
        }

    def item(self, row: ApprovalRow) -> dict[str, Any]:
        """What is shown of one that waits. Of a corrupt one only that it is, so that it hides no other."""
        item: dict[str, Any] = {
            "workflow_id": row.workflow_id,
            "step_id": row.step_id,
            "tenant_id": row.tenant_id,
            "status": AWAITING,
            "input_hash": None,
            "approval_token": None,
            "report": None,
            "output": None,
            "expired": False,
            "requested_at": instant(row.awaiting_since),
            "expires_at": None,
            "corrupt": True,
        }
        try:
            approval, bound = read(row)
        except CheckpointError:
            return item
        return item | {
            "input_hash": approval.input_hash,
            "approval_token": self.tokens.for_approver(approval, bound),
            "report": approval.report,
            "output": self.folder.path(approval.output),
            "expired": approval.expired(row.now),
            "requested_at": moment(approval.requested_at),
            "expires_at": moment(approval.expires_at),
            "corrupt": False,
        }

    def _conflict(self, approval: Approval) -> NoReturn:
        raise CheckpointError(
            "OUTPUT_CONFLICT",
            f"{self.folder.path(approval.output)} holds something else than the report; it was left as it is. "
            "See which is right, and move the other away",
        )

    def _unusable(self, approval: Approval, error: OSError) -> NoReturn:
        self._runtime.log("ERROR", "an output file cannot be used", reason=error.strerror)
        raise CheckpointError(
            "OUTPUT_WRITE_ERROR",
            f"{self.folder.path(approval.output)} cannot be written or read ({error.strerror}); nothing was changed. "
            "Mend the folder and send it again with the same token",
        ) from None


def refuse_link() -> NoReturn:
    """Raises INVALID_ARG for an output that leads through a link."""
    raise CheckpointError("INVALID_ARG", "output leads through a link; it must stay below the artifacts folder")


def moment(stored: str | None) -> Instant | None:
    """A stored time as it is answered."""
    return None if stored is None else instant(micros(stored))
