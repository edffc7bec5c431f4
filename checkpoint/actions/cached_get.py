"""`cached_get`: from SQLite where that may be served, else from PostgreSQL (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint import clock
from checkpoint.errors import CheckpointError
from checkpoint.record import Instant, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint.actions import Answer, Finish
    from checkpoint.cache.cache import Found
    from checkpoint.cache.entry import Entry
    from checkpoint.record import Record
    from checkpoint.runtime import Runtime

    Key = tuple[str, str, str | None]


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """The row and where it came from. A hit touches neither PostgreSQL nor its driver."""
    key = _key(arguments)
    return _serve(runtime, arguments, key, runtime.cache.find(*key))


def run_together(runtime: Runtime, many: Sequence[dict[str, Any]], meanwhile: Callable[[], None]) -> Finish:
    """The same for reads that wait: what the cache knows of them is read at once."""
    meanwhile()  # there is no wait, or one for each that the cache does not know
    answers: list[Answer] = []
    fetched: set[tuple[str, str]] = set()
    trust = runtime.cache.trust
    keys = [_key(arguments) for arguments in many]
    for arguments, key, known in zip(many, keys, runtime.cache.find_together(keys), strict=True):
        # What PostgreSQL was asked for since the cache was read may have changed what is there, and what may be served.
        outdated = bool(fetched) and (key[:2] in fetched or runtime.cache.trust != trust)
        cached = runtime.cache.find(*key) if outdated else known
        if cached is None or not cached.fresh:
            fetched.add(key[:2])  # a later request of the same key finds what this one brings
        try:
            answers.append(_serve(runtime, arguments, key, cached))
        except CheckpointError as error:
            answers.append(error)
    return lambda: answers


def _serve(runtime: Runtime, arguments: dict[str, Any], key: Key, cached: Found | None) -> dict[str, Any]:
    if cached is not None and cached.fresh:
        runtime.counters.cache_hits += 1
        return _hit(cached.entry, stale=False)
    runtime.counters.cache_misses += 1
    asked_at = clock.now_ms()
    try:
        record = runtime.authority.get(*key)
    except CheckpointError as error:
        if not (error.unreachable and cached is not None and arguments.get("allow_stale")):
            raise
        return _hit(cached.entry, stale=True)
    if record is not None:
        return _answer(key, "pg", record, backfilled=runtime.cache_records((record,), asked_at))
    runtime.cache.drop_left_over(*key)
    return _answer(key, "none", None)


def _key(arguments: dict[str, Any]) -> Key:
    return arguments["workflow_id"], arguments["step_id"], arguments.get("tenant_id")


def _hit(entry: Entry, *, stale: bool) -> dict[str, Any]:
    # Straight from the entry: this is the way of every hit.
    return {
        "workflow_id": entry.workflow_id,
        "step_id": entry.step_id,
        "tenant_id": entry.tenant_id,
        "found": True,
        "source": "sqlite",
        "authority_source": "sqlite",
        "backfilled": False,
        "stale": stale,
        "id": entry.id,
        "state_data": entry.state_data,
        "revision": entry.revision,
        "created_at": instant(entry.created_at),
        "updated_at": instant(entry.updated_at),
        "cached_at": Instant(entry.cached_at * 1000),
    }


def _answer(
    key: Key,
    source: str,
    record: Record | None,
    *,
    backfilled: bool = False,
) -> dict[str, Any]:
    workflow_id, step_id, tenant_id = key
    data: dict[str, Any] = {
        "workflow_id": workflow_id,
        "step_id": step_id,
        "tenant_id": tenant_id,
        "found": record is not None,
        "source": source,
        "authority_source": source,
        "backfilled": backfilled,
        "stale": False,
    }
    if record is not None:
        data.update(record.row())
        data["cached_at"] = None
    return data
