"""`list`: the checkpoints of one workflow, newest first, in pages (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint import cursor

if TYPE_CHECKING:
    from checkpoint.record import Record
    from checkpoint.runtime import Runtime

DEFAULT_LIMIT = 10_000


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """One page of rows; `next_cursor` continues it and is null at the end."""
    workflow_id, tenant_id = arguments["workflow_id"], arguments.get("tenant_id")
    include_state = arguments.get("include_state", True)
    before = None
    if "cursor" in arguments:
        before = cursor.decode(arguments["cursor"], tuple[int, int], "list", workflow_id, tenant_id)
    limit = int(arguments.get("limit", DEFAULT_LIMIT))
    records, more = runtime.authority.page(workflow_id, tenant_id, limit, before, include_state=include_state)
    last = records[-1] if more else None
    return {
        "workflow_id": workflow_id,
        "tenant_id": tenant_id,
        "checkpoints": [_row(record, include_state=include_state) for record in records],
        "count": len(records),
        "next_cursor": cursor.encode((last.updated_at, last.id), "list", workflow_id, tenant_id) if last else None,
        "authority_source": "pg",
    }


def _row(record: Record, *, include_state: bool) -> dict[str, object]:
    row = {"workflow_id": record.workflow_id, "step_id": record.step_id} | record.row()
    if not include_state:
        del row["state_data"]
    return row
