"""`pending`: the approvals that wait for a person, the one asked for first in front, in pages (contract, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint import cursor
from checkpoint.approval.desk import Desk

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime

DEFAULT_LIMIT = 100


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """One page; `next_cursor` continues it and is null at the end. Tokens are shown to whom they may be shown."""
    tenant_id = arguments.get("tenant_id")
    after = None
    if "cursor" in arguments:
        after = cursor.decode(arguments["cursor"], tuple[int, int], "pending", tenant_id)
    desk = Desk(runtime)
    rows, more = desk.store.waiting(tenant_id, int(arguments.get("limit", DEFAULT_LIMIT)), after)
    last = rows[-1] if more else None
    return {
        "tenant_id": tenant_id,
        "pending": [desk.item(row) for row in rows],
        "count": len(rows),
        "next_cursor": cursor.encode((last.awaiting_since, last.id), "pending", tenant_id) if last else None,
    }
