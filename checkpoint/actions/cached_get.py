"""`cached_get`: from SQLite where that may be served, else from PostgreSQL (contract, section 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, cast

from checkpoint import clock
from checkpoint.actions import Together, takes_key
from checkpoint.errors import CheckpointError
from checkpoint.record import Instant, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint.actions import Answer
    from checkpoint.cache.cache import Found
    from checkpoint.cache.entry import Entry
    from checkpoint.record import Record
    from checkpoint.runtime import Runtime

    Key = tuple[str, str, str | None]


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """The row and where it came from. A hit touches neither PostgreSQL nor its driver."""
    key = _key(arguments)
    return _serve(runtime, arguments, key, runtime.cache.find(*key))


def joins(arguments: dict[str, Any], taken: set[tuple[str, str]]) -> bool:
    """Distinct keys: what one of them brings into the cache, the next one of that key finds there."""
    return takes_key(arguments, taken)


def run_together(runtime: Runtime, many: Sequence[dict[str, Any]], meanwhile: Callable[[], None]) -> Together:
    """The same for reads that wait: the cache is read at once, and PostgreSQL for what the cache does not have."""
    keys = [_key(arguments) for arguments in many]
    trust = runtime.cache.trust
    found, large = runtime.cache.find_together(keys)
    answers: list[Answer | None] = [
        _hit(cached.entry, stale=False) if cached is not None and cached.fresh else None for cached in found
    ]
    missing = [place for place, answer in enumerate(answers) if answer is None and place not in large]
    if missing:
        read = _read_together(
            runtime, [many[place] for place in missing], [found[place] for place in missing], meanwhile
        )
        for place, answer in zip(missing, read, strict=True):
            answers[place] = answer
        if runtime.cache.trust != trust:  # what PostgreSQL told goes for the requests behind the first that asked it
            for place in set(range(missing[0], len(answers))).difference(missing):
                answers[place] = None
    hits = set(range(len(answers))).difference(missing)
    runtime.counters.cache_hits += sum(answers[place] is not None for place in hits)
    return Together(partial(list, answers), complete=None not in answers)


def _read_together(
    runtime: Runtime, many: Sequence[dict[str, Any]], cached: Sequence[Found | None], meanwhile: Callable[[], None]
) -> list[Answer | None]:
    keys = [_key(arguments) for arguments in many]
    asked_at = clock.now_ms()
    try:
        records, large = runtime.authority.get_together(keys, meanwhile)
    except CheckpointError as error:
        runtime.counters.cache_misses += len(keys)
        return [_without_authority(error, arguments, known) for arguments, known in zip(many, cached, strict=True)]
    runtime.counters.cache_misses += len(keys) - len(large)
    written = runtime.cache_records([record for record in records if record is not None], asked_at)
    return [
        None if place in large else _told(runtime, keys[place], record, backfilled=written)
        for place, record in enumerate(records)
    ]


def _without_authority(error: CheckpointError, arguments: dict[str, Any], cached: Found | None) -> Answer:
    """The error, or what is older than it should be, where that is wanted and PostgreSQL cannot be reached."""
    if error.unreachable and cached is not None and arguments.get("allow_stale"):
        return _hit(cached.entry, stale=True)
    return error


def _serve(runtime: Runtime, arguments: dict[str, Any], key: Key, cached: Found | None) -> dict[str, Any]:
    if cached is not None and cached.fresh:
        runtime.counters.cache_hits += 1
        return _hit(cached.entry, stale=False)
    runtime.counters.cache_misses += 1
    asked_at = clock.now_ms()
    try:
        record = runtime.authority.get(*key)
    except CheckpointError as error:
        answer = _without_authority(error, arguments, cached)
        if answer is error:
            raise
        return cast("dict[str, Any]", answer)
    return _told(runtime, key, record, backfilled=record is not None and runtime.cache_records((record,), asked_at))


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


def _told(runtime: Runtime, key: Key, record: Record | None, *, backfilled: bool) -> dict[str, Any]:
    """The answer where PostgreSQL was asked."""
    workflow_id, step_id, tenant_id = key
    if record is None:
        runtime.cache.drop_left_over(*key)
    source = "none" if record is None else "pg"
    data: dict[str, Any] = {
        "workflow_id": workflow_id,
        "step_id": step_id,
        "tenant_id": tenant_id,
        "found": record is not None,
        "source": source,
        "authority_source": source,
        "backfilled": backfilled and record is not None,
        "stale": False,
    }
    if record is not None:
        data.update(record.row())
        data["cached_at"] = None
    return data
