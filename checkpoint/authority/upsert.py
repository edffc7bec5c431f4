"""The write of one state: an upsert, or a compare-and-set, and why it was refused (contract, section 3, save)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from checkpoint.authority.adaptation import JsonArray, StateText, TextArray
from checkpoint.authority.failure import nothing_done
from checkpoint.authority.policies import hides_rows, refuse_by_policies
from checkpoint.authority.write_id import new_write_id
from checkpoint.errors import OTHER_TENANT, CheckpointError
from checkpoint.record import Record, State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from psycopg import Cursor

    from checkpoint.authority.execution import Executor

REFUSED_TRIES = 10
HOPEFUL_TRIES = 2


class _Standing(msgspec.Struct, frozen=True):
    """The row under a key, without its state."""

    tenant_id: str
    kind: str
    revision: int
    write_id: str
    id: int
    created_at: int
    updated_at: int
    ahead: bool

    def is_of(self, write_id: str) -> bool:
        """Whether it is what the write with that id wrote."""
        return self.write_id == write_id


class Upsert:
    """Saves through an executor."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._session = executor.session

    def save(
        self, state: State, expected_revision: int | None, *, meanwhile: Callable[[], object] | None = None
    ) -> Record:
        """The record as it stands after the write; `meanwhile` is done while PostgreSQL works on it.

        Raises TENANT_CONFLICT, KIND_CONFLICT, REVISION_CONFLICT, PG_WRITE_ERROR, PG_WRITE_UNKNOWN.
        """
        name = "save" if expected_revision is None else "save_over" if expected_revision else "save_new"
        write_id = new_write_id()
        parameters: dict[str, Any] = {
            "workflow_id": state.workflow_id,
            "step_id": state.step_id,
            "tenant_id": state.tenant_id,
            "state_data": StateText(state.state_data),
            "write_id": write_id,
            "expected_revision": expected_revision,
            "sent_us": 0,
        }
        aside = None if meanwhile is None else self._executor.unwatched(meanwhile)
        uncertain = False

        def work(cursor: Cursor[Any]) -> Record:
            standing = None
            for tries in range(REFUSED_TRIES):
                ahead_us = standing.updated_at if standing is not None and standing.ahead else 0
                parameters["sent_us"] = max(self._session.clock.earliest(), ahead_us)
                if tries < HOPEFUL_TRIES:
                    row = self._one_of_tenant(cursor, name, parameters, None if tries else aside)
                else:
                    row = self._one_under_lock(cursor, name, parameters)
                if row is not None:
                    return self._record(state, row)
                standing = self._standing(cursor, state)
                if standing is not None and standing.is_of(write_id):  # an earlier attempt of this very write
                    return Record(*state, standing.id, standing.revision, standing.created_at, standing.updated_at)
                if standing is None and expected_revision and self._is_hidden(cursor, parameters):
                    raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT)
                _refuse(standing, state.tenant_id, expected_revision, uncertain=uncertain)
            if standing is None and hides_rows(self._session, cursor, state.tenant_id):  # a row that the policies hide
                raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT)
            raise nothing_done()

        def settle(cursor: Cursor[Any]) -> Record | None:
            nonlocal uncertain
            uncertain = True
            standing = self._standing(cursor, state)
            if standing is None or not standing.is_of(write_id):
                if _hides(standing, expected_revision, parameters["sent_us"]):
                    raise _overtaken()
                return None
            return Record(*state, standing.id, standing.revision, standing.created_at, standing.updated_at)

        return self._executor.write("PG_WRITE_ERROR", work, settle)

    def save_together(self, states: Sequence[State], meanwhile: Callable[[], object]) -> list[Record | None]:
        """The records of states with distinct keys, written by one statement; None for one that it refused.

        Times follow the order given. Raises PG_WRITE_ERROR, PG_WRITE_UNKNOWN for all of them, and INVALID_ARG where one
        of them cannot be stored; nothing is written then.
        """
        write_id = new_write_id()
        parameters: dict[str, Any] = {
            "workflow_ids": TextArray([state.workflow_id.encode() for state in states]),
            "step_ids": TextArray([state.step_id.encode() for state in states]),
            "tenant_ids": TextArray([state.tenant_id.encode() for state in states]),
            "states": JsonArray([state.state_data for state in states]),
            "write_id": write_id,
        }

        def records(rows: list[tuple[Any, ...]]) -> list[Record | None]:
            written: list[Record | None] = [None] * len(states)
            for place, *values in rows:
                written[place - 1] = self._record(states[place - 1], values)
            return written

        def work(cursor: Cursor[Any]) -> list[Record | None]:
            parameters["sent_us"] = self._session.clock.earliest()
            statement = self._session.prepared("save_together")
            return records(statement.rows(cursor.connection, parameters, self._executor.unwatched(meanwhile)))

        def settle(cursor: Cursor[Any]) -> list[Record | None] | None:
            rows = self._session.prepared("saved_together").rows(cursor.connection, parameters)
            written = [(place, *values) for place, is_ours, _, *values in rows if is_ours]
            saved_since = any(not is_ours and not refused for _, is_ours, refused, *_ in rows)
            if saved_since or (written and len(rows) < len(states)):  # it was written as a whole, or not at all
                raise _overtaken()
            return records(written) if written else None

        return self._executor.write("PG_WRITE_ERROR", work, settle, before_connecting=meanwhile)

    def _one_of_tenant(
        self,
        cursor: Cursor[Any],
        name: str,
        parameters: dict[str, Any],
        meanwhile: Callable[[], object] | None = None,
    ) -> tuple[Any, ...] | None:
        """The row of a save, with what the policies of row-level security refuse told apart from missing grants."""
        try:
            return self._session.prepared(name).row(cursor.connection, parameters, meanwhile)
        except psycopg.errors.InsufficientPrivilege:
            refuse_by_policies(self._session, cursor, parameters["tenant_id"])
            raise

    def _one_under_lock(self, cursor: Cursor[Any], name: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        """The same while the row is held, so that others who save it all the time cannot be later again and again."""
        with cursor.connection.transaction():
            locked = cursor.execute(self._session.statement("lock_key"), parameters).fetchone()
            if locked is not None:
                parameters["sent_us"] = max(parameters["sent_us"], locked[0])
            return self._one_of_tenant(cursor, name, parameters)

    def _is_hidden(self, cursor: Cursor[Any], parameters: dict[str, Any]) -> bool:
        """Whether a row stands under the key that the policies hide: then an insert, taken back, does nothing."""
        if not hides_rows(self._session, cursor, parameters["tenant_id"]):
            return False
        with cursor.connection.transaction(force_rollback=True):
            return self._one_of_tenant(cursor, "save_new", parameters) is None

    def _record(self, state: State, row: Sequence[Any]) -> Record:
        row_id, created_at, updated_at, revision, table_oid, clock_us = row
        self._session.stands_on(table_oid)
        self._session.clock.tell(clock_us)
        return Record(*state, row_id, revision, created_at, updated_at)

    def _standing(self, cursor: Cursor[Any], state: State) -> _Standing | None:
        key = {"workflow_id": state.workflow_id, "step_id": state.step_id}
        row = cursor.execute(self._session.statement("standing"), key).fetchone()
        clock_us, tenant_id, *columns = row or (0, None)
        self._session.clock.tell(clock_us)
        return None if tenant_id is None else _Standing(tenant_id, *columns)


def _refuse(standing: _Standing | None, tenant_id: str, expected_revision: int | None, *, uncertain: bool) -> None:
    """Raises why a save wrote nothing, if what stands under its key just after explains it."""
    if standing is not None and standing.tenant_id != tenant_id:
        raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT)
    if standing is not None and standing.kind != "checkpoint":
        raise CheckpointError(
            "KIND_CONFLICT", "an approval stands under this workflow_id and step_id; save under another step_id"
        )
    current = 0 if standing is None else standing.revision
    if expected_revision is None or expected_revision == current:
        return  # what stood in the way is gone already, or the statement came too late
    if uncertain and current > expected_revision + 1:
        raise _overtaken()
    raise CheckpointError(
        "REVISION_CONFLICT",
        f"expected_revision {expected_revision} does not hold, the revision is {current}; get the state and decide",
    )


def _hides(standing: _Standing | None, expected_revision: int | None, sent_us: int) -> bool:
    """Whether what stands may hide that the write, sent at `sent_us`, was carried out before others came.

    A compare-and-set tells it by the revision, as long as the row is the one that stood then.
    """
    if standing is None:
        return bool(expected_revision)  # it is deleted now, before or after the write
    return (standing.updated_at if expected_revision is None else standing.created_at) > sent_us


def _overtaken() -> CheckpointError:
    """The answer where what others have done since hides whether the write was carried out before."""
    return CheckpointError(
        "PG_WRITE_UNKNOWN", "the connection broke, and others have changed the key since; a get tells what stands"
    )
