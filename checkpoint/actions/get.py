"""`get`: the checkpoint as PostgreSQL has it, never from the cache (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """The row, or `found` false where there is none of the tenant asked for."""
    workflow_id, step_id, tenant_id = arguments["workflow_id"], arguments["step_id"], arguments.get("tenant_id")
    record = runtime.authority.get(workflow_id, step_id, tenant_id)
    data = {"workflow_id": workflow_id, "step_id": step_id, "tenant_id": tenant_id, "found": record is not None}
    if record is not None:
        data.update(record.row())
    data["authority_source"] = "none" if record is None else "pg"
    return data
