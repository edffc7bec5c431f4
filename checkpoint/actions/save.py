"""`save`: PostgreSQL first, whose success is the answer's; then the cache, within its budget (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.actions import DEFAULT_TENANT
from checkpoint.errors import CheckpointError
from checkpoint.record import instant

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """Stores a state and answers id, times, revision and whether the cache has it already."""
    workflow_id, step_id = arguments["workflow_id"], arguments["step_id"]
    tenant_id = arguments.get("tenant_id", DEFAULT_TENANT)
    expected = arguments.get("expected_revision")
    try:
        record = runtime.authority.upsert.save(
            workflow_id, step_id, tenant_id, arguments["state_data"], None if expected is None else int(expected)
        )
    except CheckpointError as error:
        if error.code == "PG_WRITE_UNKNOWN":
            runtime.cache.drop(tenant_id, workflow_id, step_id)
        raise
    return {
        "workflow_id": workflow_id,
        "step_id": step_id,
        "tenant_id": tenant_id,
        "id": record.id,
        "created_at": instant(record.created_at),
        "updated_at": instant(record.updated_at),
        "revision": record.revision,
        "cache_written": runtime.cache_records((record,)),
        "authority_source": "pg",
    }
