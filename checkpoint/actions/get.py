"""`get`: the checkpoint as PostgreSQL has it, never from the cache (contract, section 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from checkpoint.actions import Together
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint.actions import Answer
    from checkpoint.record import Record
    from checkpoint.runtime import Runtime

Key = tuple[str, str, str | None]


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """The row, or `found` false where there is none of the tenant asked for."""
    key = _key(arguments)
    return _data(key, runtime.authority.get(*key))


def joins(_arguments: dict[str, Any], _taken: set[Any]) -> bool:
    """Reads go together with any others."""
    return True


def run_together(runtime: Runtime, many: Sequence[dict[str, Any]], meanwhile: Callable[[], None]) -> Together:
    """The same for reads that wait, as one statement; large states are read alone, so that few are held at once."""
    keys = [_key(arguments) for arguments in many]
    try:
        records, large = runtime.authority.get_together(keys, meanwhile)
    except CheckpointError as error:
        return Together(partial(list, [error] * len(keys)), complete=True)

    def make() -> list[Answer | None]:
        return [None if place in large else _data(keys[place], record) for place, record in enumerate(records)]

    return Together(make, complete=not large)


def _key(arguments: dict[str, Any]) -> Key:
    return arguments["workflow_id"], arguments["step_id"], arguments.get("tenant_id")


def _data(key: Key, record: Record | None) -> dict[str, Any]:
    workflow_id, step_id, tenant_id = key
    if record is None:
        missing = {"tenant_id": tenant_id, "found": False, "authority_source": "none"}
        return {"workflow_id": workflow_id, "step_id": step_id, **missing}
    return {
        "workflow_id": workflow_id,
        "step_id": step_id,
        "tenant_id": record.tenant_id,
        "found": True,
        **record.row(),
        "authority_source": "pg",
    }
