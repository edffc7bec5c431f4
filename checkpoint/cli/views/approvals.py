"""What is shown of approvals."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from checkpoint.cli.view import BAD, GOOD, QUIET, Blocks, Column, Fact, Facts, Prose, Table, Toned, View
from checkpoint.cli.views.shared import key, more

if TYPE_CHECKING:
    from checkpoint import results

DECIDE = "to decide: checkpoint approve {} TOKEN, or reject in its place"


def approval(result: results.Approval) -> View:
    """Of `request_approval`, `approve` and `reject`."""
    tone = {"completed": GOOD, "rejected": BAD}.get(result.status, QUIET)
    facts = (
        *key(result),
        Fact("status", "status", Toned(result.status, tone)),
        Fact("approval_token", "token", result.approval_token),
        Fact("requested_at", "asked", result.requested_at),
        Fact("expires_at", "expires", result.expires_at),
        Fact("decided_at", "decided", result.decided_at),
        Fact("decided_by", "by", result.decided_by),
        Fact("reason", "reason", result.reason),
        Fact("output", "output", result.output),
    )
    waiting = result.status == "awaiting-approval"
    report = (Prose("report", result.report),) if waiting and result.report is not None else ()
    return View((Facts(facts), *report), tuple(_next_steps(result)))


def pending(result: results.PendingPage) -> View:
    """Of `pending`."""
    columns = (
        Column("workflow_id", "workflow"),
        Column("step_id", "step"),
        Column("tenant_id", "tenant"),
        Column("approval_token", "token"),
        Column("requested_at", "asked"),
        Column("expires_at", "expires"),
        Column("state", "state"),
        Column("output", "output"),
        Column("report", "report"),
    )
    rows = tuple(
        (
            row.workflow_id,
            row.step_id,
            row.tenant_id,
            row.approval_token,
            row.requested_at,
            row.expires_at,
            _waiting(row),
            row.output,
            row.report,
        )
        for row in result.pending
    )
    if not rows:
        return View((), ("nothing waits for an approval",))
    notes = (*more(result.next_cursor), DECIDE.format("WORKFLOW STEP"))
    return View((Blocks(Table(columns, rows)),), notes)


def _next_steps(result: results.Approval) -> list[str]:
    if result.needs_report:
        return ["nobody has been asked: prepare the report, and ask again with --report"]
    if result.expired:
        return ["its time is over: ask again with --renew"]
    if result.already_completed or result.already_rejected:
        return ["this was decided before; nothing was changed"]
    if result.status == "awaiting-approval":
        return [DECIDE.format(shlex.join((result.workflow_id, result.step_id)))]
    return []


def _waiting(row: results.WaitingApproval) -> Toned | None:
    if row.corrupt:
        return Toned("corrupt", BAD, "changed by something else, and not to be trusted")
    return Toned("expired", BAD) if row.expired else None
