"""`save`: PostgreSQL first, whose success is the answer's; then the cache, within its budget (contract, section 3)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from checkpoint import clock
from checkpoint.actions import Together, takes_key
from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT, Record, State, instant

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint.actions import Answer
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


def joins(arguments: dict[str, Any], taken: set[tuple[str, str]]) -> bool:
    """One statement writes distinct keys, whatever stands there."""
    return "expected_revision" not in arguments and takes_key(arguments, taken)


def run_together(runtime: Runtime, many: Sequence[dict[str, Any]], meanwhile: Callable[[], None]) -> Together:
    """The same for saves that wait, as one statement."""
    asked_at = clock.now_ms()
    states = [_state(arguments) for arguments in many]
    try:
        records = runtime.authority.upsert.save_together(states, meanwhile)
    except CheckpointError as error:
        refused = error.code == "PG_WRITE_ERROR" and not error.unreachable
        if error.code == "INVALID_ARG" or refused:  # one of them cannot be stored: only that one is to fail
            return Together(partial(list, [None] * len(many)), complete=False)
        _forget_if_unknown(runtime, error, states)
        return Together(partial(list, [error] * len(many)), complete=True)
    saved = [record for record in records if record is not None]

    def make() -> list[Answer | None]:
        written = runtime.cache_records(saved, asked_at)
        return [None if record is None else _data(record, cache_written=written) for record in records]

    return Together(make, complete=len(saved) == len(many))


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
