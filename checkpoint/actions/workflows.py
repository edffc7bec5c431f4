"""`workflows`: which workflows have checkpoints, the one saved last first, in pages (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint import cursor
from checkpoint.record import instant

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime

DEFAULT_LIMIT = 1000


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """One page of workflows; `next_cursor` continues it and is null at the end."""
    tenant_id = arguments.get("tenant_id")
    limit = int(arguments.get("limit", DEFAULT_LIMIT))
    after = None
    if "cursor" in arguments:
        after = cursor.decode(arguments["cursor"], tuple[int, str, str], "workflows", tenant_id)
    found = runtime.authority.workflows(tenant_id, limit + 1, after)
    page = found[:limit]
    next_cursor = None
    if len(found) > limit:
        last = page[-1]
        position = (last.last_updated_at, last.workflow_id, last.tenant_id)
        next_cursor = cursor.encode(position, "workflows", tenant_id)
    return {
        "tenant_id": tenant_id,
        "workflows": [
            {
                "workflow_id": workflow.workflow_id,
                "tenant_id": workflow.tenant_id,
                "checkpoint_count": workflow.checkpoint_count,
                "last_updated_at": instant(workflow.last_updated_at),
            }
            for workflow in page
        ],
        "count": len(page),
        "next_cursor": next_cursor,
    }
