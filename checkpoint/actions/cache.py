"""`cache`: SQLite only; PostgreSQL does not know such an entry (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.cache.cache import OtherTenantsEntry
from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT, Record, instant

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """Writes within the budget or not at all; `written` tells."""
    record = Record(
        arguments["workflow_id"],
        arguments["step_id"],
        arguments.get("tenant_id", DEFAULT_TENANT),
        arguments["state_data"],
    )
    try:
        written, cached_at = runtime.cache.put_lossy(record)
    except OtherTenantsEntry:
        raise CheckpointError(
            "TENANT_CONFLICT", "the cache holds another tenant's entry of this workflow_id and step_id; use other ids"
        ) from None
    return {
        "workflow_id": record.workflow_id,
        "step_id": record.step_id,
        "tenant_id": record.tenant_id,
        "written": written,
        "cached_at": instant(cached_at * 1000) if written else None,
        "lossy": True,
    }
