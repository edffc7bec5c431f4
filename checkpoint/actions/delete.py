"""`delete`: one step, or on explicit demand all steps, of one tenant (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """How many rows were deleted; none is a success."""
    workflow_id, step_id = arguments["workflow_id"], arguments.get("step_id")
    tenant_id = arguments.get("tenant_id", DEFAULT_TENANT)
    try:
        lives = runtime.authority.delete(workflow_id, step_id, tenant_id)
    except CheckpointError as error:
        if error.code == "PG_WRITE_UNKNOWN":
            runtime.cache.drop(tenant_id, workflow_id, step_id)
        raise
    runtime.cache_ended(lives)
    return {"workflow_id": workflow_id, "step_id": step_id, "tenant_id": tenant_id, "deleted_count": len(lives)}
