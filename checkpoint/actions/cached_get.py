"""`cached_get`: from SQLite where that may be served, else from PostgreSQL (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.errors import CheckpointError
from checkpoint.record import instant

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint.cache.cache import Found
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """The row and where it came from. A hit touches neither PostgreSQL nor its driver."""
    return _serve(runtime, arguments, runtime.cache.find(*_key(arguments)))


def run_together(runtime: Runtime, many: Sequence[dict[str, Any]]) -> Sequence[dict[str, Any] | CheckpointError]:
    """The same for reads that wait: what the cache knows of them is one statement."""
    answers: list[dict[str, Any] | CheckpointError] = []
    for arguments, cached in zip(many, runtime.cache.find_together([_key(each) for each in many]), strict=True):
        try:
            answers.append(_serve(runtime, arguments, cached))
        except CheckpointError as error:
            answers.append(error)
    return answers


def _serve(runtime: Runtime, arguments: dict[str, Any], cached: Found | None) -> dict[str, Any]:
    workflow_id, step_id, tenant_id = _key(arguments)
    data = {"workflow_id": workflow_id, "step_id": step_id, "tenant_id": tenant_id}
    if cached is not None and cached.fresh:
        runtime.counters.cache_hits += 1
        return data | _hit(cached, stale=False)
    runtime.counters.cache_misses += 1
    try:
        record = runtime.authority.get(workflow_id, step_id, tenant_id)
    except CheckpointError as error:
        if not (error.unreachable and cached is not None and arguments.get("allow_stale")):
            raise
        return data | _hit(cached, stale=True)
    if record is None:
        if cached is not None:
            runtime.cache.drop_seen(cached.entry)
        return data | _answer("none", found=False)
    backfilled = runtime.cache_records((record,))
    return data | record.row() | {"cached_at": None} | _answer("pg", found=True, backfilled=backfilled)


def _key(arguments: dict[str, Any]) -> tuple[str, str, str | None]:
    return arguments["workflow_id"], arguments["step_id"], arguments.get("tenant_id")


def _hit(cached: Found, *, stale: bool) -> dict[str, Any]:
    row = cached.entry.record().row()
    row["cached_at"] = instant(cached.entry.cached_at * 1000)
    return row | _answer("sqlite", found=True, stale=stale)


def _answer(source: str, *, found: bool, backfilled: bool = False, stale: bool = False) -> dict[str, Any]:
    return {
        "found": found,
        "source": source,
        "authority_source": source,
        "backfilled": backfilled,
        "stale": stale,
    }
