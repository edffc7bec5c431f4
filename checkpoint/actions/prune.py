"""`prune`: rows that were not saved for a while, in chunks of their own transactions (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """How many rows were deleted, or with `dry_run` would be. After a failure the message says how many are gone."""
    workflow_id = arguments.get("workflow_id")
    tenant_id = None if arguments.get("all_tenants") else arguments.get("tenant_id", DEFAULT_TENANT)
    dry_run = arguments.get("dry_run", False)
    before_us = runtime.authority.server_time(int(arguments["older_than_sec"]))
    if dry_run:
        count = runtime.authority.prunable(workflow_id, tenant_id, before_us)
    else:
        count = _prune(runtime, workflow_id, tenant_id, before_us)
    return {"workflow_id": workflow_id, "tenant_id": tenant_id, "deleted_count": count, "dry_run": dry_run}


def _prune(runtime: Runtime, workflow_id: str | None, tenant_id: str | None, before_us: int) -> int:
    deleted = 0
    while True:
        try:
            lives = runtime.authority.prune(workflow_id, tenant_id, before_us)
        except CheckpointError as error:
            if error.code == "PG_WRITE_UNKNOWN":
                runtime.cache.drop(tenant_id, workflow_id, None)
            raise CheckpointError(error.code, f"{error.message}; {deleted} checkpoints were deleted before") from None
        runtime.cache_ended(lives)
        deleted += len(lives)
        if not lives:
            return deleted
