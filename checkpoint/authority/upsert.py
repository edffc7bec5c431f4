"""The write of one state: an upsert, or a compare-and-set, and why it was refused (contract, section 3, save)."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg

from checkpoint.authority.session import StateText
from checkpoint.errors import CheckpointError
from checkpoint.record import Record

if TYPE_CHECKING:
    from psycopg import Cursor

    from checkpoint.authority.execution import Executor

REFUSED_TRIES = 10
OTHER_TENANT = "this workflow_id and step_id belong to another tenant; use other ids"


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


class Upsert:
    """Saves through an executor. `age_limit` is how long a statement may wait before it refuses to act."""

    def __init__(self, executor: Executor, age_limit: str) -> None:
        self._executor = executor
        self._session = executor.session
        self._age_limit = age_limit

    def save(
        self, workflow_id: str, step_id: str, tenant_id: str, state_data: bytes, expected_revision: int | None
    ) -> Record:
        """The record as it stands after the write.

        Raises TENANT_CONFLICT, KIND_CONFLICT, REVISION_CONFLICT, PG_WRITE_ERROR, PG_WRITE_UNKNOWN.
        """
        name = "save" if expected_revision is None else "save_over" if expected_revision else "save_new"
        write_id = os.urandom(16).hex()
        parameters = {
            "workflow_id": workflow_id,
            "step_id": step_id,
            "tenant_id": tenant_id,
            "state_data": StateText(state_data),
            "write_id": write_id,
            "expected_revision": expected_revision,
            "age_limit": self._age_limit,
            "fenced": True,
        }
        uncertain = False

        def record(row: tuple[Any, ...]) -> Record:
            row_id, created_at, updated_at, revision = row
            return Record(workflow_id, step_id, tenant_id, state_data, row_id, revision, created_at, updated_at)

        def work(cursor: Cursor[Any]) -> Record:
            for _ in range(REFUSED_TRIES):
                row = self._one_of_tenant(cursor, name, parameters)
                if row is not None:
                    return record(row)
                standing = self._standing(cursor, workflow_id, step_id)
                _refuse(standing, tenant_id, expected_revision, uncertain=uncertain)
                parameters["fenced"] = standing is None or not standing.ahead
            if standing is None and self._binding(cursor, tenant_id)[0]:  # a row that the policies hide
                raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT)
            raise CheckpointError(
                "PG_WRITE_ERROR",
                "the statement did nothing, since it was delayed beyond CHECKPOINT_STATEMENT_TIMEOUT; send it again",
            )

        def settle(cursor: Cursor[Any]) -> Record | None:
            nonlocal uncertain
            uncertain = True
            standing = self._standing(cursor, workflow_id, step_id)
            if standing is None or standing.write_id.replace("-", "") != write_id:
                return None
            return record((standing.id, standing.created_at, standing.updated_at, standing.revision))

        return self._executor.write("PG_WRITE_ERROR", work, settle)

    def _one(self, cursor: Cursor[Any], name: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        return cursor.execute(self._session.statement(name), parameters).fetchone()

    def _one_of_tenant(self, cursor: Cursor[Any], name: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        """The same for a save, with what the policies of row-level security refuse told apart from missing grants."""
        try:
            return self._one(cursor, name, parameters)
        except psycopg.errors.InsufficientPrivilege:
            bound, allowed, granted = self._binding(cursor, parameters["tenant_id"])
            if not (bound and granted):
                raise
            if allowed:
                raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT) from None
            raise CheckpointError("TENANT_DENIED", "the role of DATABASE_URL is bound to another tenant") from None

    def _binding(self, cursor: Cursor[Any], tenant_id: str) -> tuple[Any, ...]:
        table = f"{self._session.schema}.workflow_checkpoints"
        return self._one(cursor, "binding", {"table": table, "tenant_id": tenant_id}) or (False, False, False)

    def _standing(self, cursor: Cursor[Any], workflow_id: str, step_id: str) -> _Standing | None:
        row = self._one(cursor, "standing", {"workflow_id": workflow_id, "step_id": step_id})
        return None if row is None else _Standing(*row)


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
        raise CheckpointError(
            "PG_WRITE_UNKNOWN", "the connection broke, and others have saved since; a get tells what stands"
        )
    raise CheckpointError(
        "REVISION_CONFLICT",
        f"expected_revision {expected_revision} does not hold, the revision is {current}; get the state and decide",
    )
