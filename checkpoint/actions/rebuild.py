"""`rebuild`: the cache made anew from PostgreSQL, in one transaction (contract, section 3)."""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, Any

from checkpoint.cache.failure import CacheError
from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checkpoint.record import Record
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """How many rows were read, replaced and written. A failure anywhere leaves the old cache as it was."""
    tenant_id = arguments.get("tenant_id", DEFAULT_TENANT)
    workflow_id = arguments.get("workflow_id")
    limit = runtime.settings.rebuild_limit
    started = time.monotonic()
    read = 0
    more = False

    def counted(records: Iterator[Record]) -> Iterator[Record]:
        nonlocal read, more
        read = 0
        for record in runtime.watched("rebuild", islice(records, limit)):
            read += 1
            yield record
        more = next(records, None) is not None

    try:
        authority = runtime.authority
        mark = runtime.cache.begin_rebuild()
        before, written, no_room = authority.newest(
            tenant_id,
            workflow_id,
            limit + 1,
            lambda records: runtime.cache.rebuild(tenant_id, workflow_id, mark, counted(records)),
        )
    except CacheError as error:
        runtime.log("ERROR", "rebuild failed", reason=str(error))
        raise CheckpointError("REBUILD_FAILED", f"{error}; nothing was changed") from None
    return {
        "tenant_id": tenant_id,
        "workflow_id": workflow_id,
        "pg_read_count": read,
        "deleted_before": before,
        "rebuilt_count": written,
        "elapsed_sec": round(time.monotonic() - started, 6),
        "truncated": more or no_room,
    }
