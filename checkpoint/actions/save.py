"""`save`: PostgreSQL first, whose success is the answer's; then the cache, within its budget (contract, section 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from checkpoint import clock
from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT, Record, State, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint.actions import Answer, Finish
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """Stores a state and answers id, times, revision and whether the cache has it already."""
    asked_at = clock.now_ms()
    state = _state(arguments)
    expected = arguments.get("expected_revision")
    try:
        record = runtime.authority.upsert.save(
            state, None if expected is None else int(expected), meanwhile=partial(runtime.cache.announce, asked_at)
        )
    except CheckpointError as error:
        _forget_if_unknown(runtime, error, [state])
        raise
    return _data(record, cache_written=runtime.cache_records((record,), asked_at))


def run_together(runtime: Runtime, many: Sequence[dict[str, Any]], meanwhile: Callable[[], None]) -> Finish:
    """The same for saves that wait: neighbours with distinct keys and no expected revision become one statement."""
    *groups, last = _groups(many)
    answers: list[Answer] = []
    for group in groups:
        answers += _save_group(runtime, group, meanwhile)()
    finish = _save_group(runtime, last, meanwhile)
    return lambda: answers + finish()


def _groups(many: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    groups: list[list[dict[str, Any]]] = []
    keys: set[tuple[str, str]] = set()
    alone = True
    for arguments in many:
        key = arguments["workflow_id"], arguments["step_id"]
        if alone or key in keys or "expected_revision" in arguments:
            groups.append([])
            keys.clear()
        alone = "expected_revision" in arguments
        groups[-1].append(arguments)
        keys.add(key)
    return groups


def _save_group(runtime: Runtime, group: list[dict[str, Any]], meanwhile: Callable[[], None]) -> Finish:
    if len(group) == 1:
        meanwhile()
        return _one_by_one(runtime, group)
    asked_at = clock.now_ms()
    states = [_state(arguments) for arguments in group]
    try:
        records = runtime.authority.upsert.save_together(states, meanwhile)
    except CheckpointError as error:
        meanwhile()
        refused = error.code == "PG_WRITE_ERROR" and not error.unreachable
        if error.code == "INVALID_ARG" or refused:  # one of them cannot be stored: only that one fails
            return _one_by_one(runtime, group)
        _forget_if_unknown(runtime, error, states)
        answers: list[Answer] = [error] * len(group)
        return lambda: answers
    written = [record for record in records if record is not None]
    if len(written) == len(group):
        return lambda: _cached(runtime, written, asked_at)
    saved = iter(_cached(runtime, written, asked_at))
    answers = [
        _alone(runtime, arguments) if record is None else next(saved)
        for arguments, record in zip(group, records, strict=True)
    ]
    return lambda: answers


def _cached(runtime: Runtime, records: Sequence[Record], asked_at: int) -> list[Answer]:
    written = runtime.cache_records(records, asked_at)
    return [_data(record, cache_written=written) for record in records]


def _one_by_one(runtime: Runtime, group: Sequence[dict[str, Any]]) -> Finish:
    answers = [_alone(runtime, arguments) for arguments in group]
    return lambda: answers


def _alone(runtime: Runtime, arguments: dict[str, Any]) -> Answer:
    try:
        return run(runtime, arguments)
    except CheckpointError as error:
        return error


def _forget_if_unknown(runtime: Runtime, error: CheckpointError, states: Sequence[State]) -> None:
    if error.code == "PG_WRITE_UNKNOWN":
        for state in states:
            runtime.cache.drop(state.tenant_id, state.workflow_id, state.step_id)


def _state(arguments: dict[str, Any]) -> State:
    tenant_id = arguments.get("tenant_id", DEFAULT_TENANT)
    return State(arguments["workflow_id"], arguments["step_id"], tenant_id, arguments["state_data"])


def _data(record: Record, *, cache_written: bool) -> dict[str, Any]:
    return {
        "workflow_id": record.workflow_id,
        "step_id": record.step_id,
        "tenant_id": record.tenant_id,
        "id": record.id,
        "created_at": instant(record.created_at),
        "updated_at": instant(record.updated_at),
        "revision": record.revision,
        "cache_written": cache_written,
        "authority_source": "pg",
    }
