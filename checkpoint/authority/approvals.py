"""Approvals in PostgreSQL: read, asked for, and changed under the lock of their row (contract, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg

from checkpoint.approval.row import ApprovalRow
from checkpoint.authority.adaptation import StateText
from checkpoint.authority.failure import nothing_done
from checkpoint.authority.page import STREAM_ROWS, page_of
from checkpoint.authority.policies import hides_rows, refuse_by_policies
from checkpoint.authority.write_id import new_write_id
from checkpoint.errors import OTHER_TENANT, CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Cursor

    from checkpoint.approval.row import ApprovalChange
    from checkpoint.authority.execution import Executor

TRIES = 10
FIRST_MICROS = -30_610_224_000_000_001  # before every awaiting_since that the table takes, the year 1000

Key = dict[str, str]


class ApprovalStore:
    """Statements of approvals through an executor."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._session = executor.session
        self._sql = self._session.load("approvals.sql")

    def request(
        self,
        workflow_id: str,
        step_id: str,
        tenant_id: str,
        make: Callable[[int], ApprovalChange] | None,
    ) -> tuple[ApprovalRow | None, bool]:
        """What stands under the key, and whether it was made now: by `make`, from PostgreSQL's clock, if there is one.

        Raises PG_WRITE_ERROR, PG_WRITE_UNKNOWN.
        """
        key = {"workflow_id": workflow_id, "step_id": step_id}
        write_id = new_write_id()

        def work(cursor: Cursor[Any]) -> tuple[ApprovalRow | None, bool]:
            for _ in range(TRIES):
                now, row = self._find(cursor, key)
                if row is not None or make is None:
                    return row, _is_of(row, write_id)
                change = make(now)
                written = self._insert(cursor, key | {"tenant_id": tenant_id} | self._columns(change, write_id))
                if written is not None:
                    return self._written(key, tenant_id, now, change, write_id, written), True
            if hides_rows(self._session, cursor, tenant_id):
                raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT)
            raise nothing_done()

        def settle(cursor: Cursor[Any]) -> tuple[ApprovalRow | None, bool] | None:
            row = self._find(cursor, key)[1]
            return (row, True) if _is_of(row, write_id) else None

        return self._executor.write("PG_WRITE_ERROR", work, settle)

    def change(
        self, workflow_id: str, step_id: str, judge: Callable[[ApprovalRow | None], ApprovalChange | None]
    ) -> tuple[ApprovalRow | None, bool]:
        """What stands under the key after `judge` has seen it under its lock, and whether `judge` changed it.

        All of it is one transaction: what `judge` raises leaves the row as it was. It is called again where the
        transaction has to be repeated. Raises PG_WRITE_ERROR, PG_WRITE_UNKNOWN.
        """
        key = {"workflow_id": workflow_id, "step_id": step_id}
        write_id = new_write_id()

        def work(cursor: Cursor[Any]) -> tuple[ApprovalRow | None, bool]:
            with cursor.connection.transaction():
                found = cursor.execute(self._sql["lock"], key).fetchone()
                row = None if found is None else self._row(key, found)
                if _is_of(row, write_id):  # an earlier attempt was carried out after all
                    return row, True
                change = judge(row)
                if row is None or change is None:
                    return row, False
                parameters = key | {"id": row.id, "revision": row.revision} | self._columns(change, write_id)
                written = cursor.execute(self._sql["change"], parameters).fetchone()
                if written is None:
                    raise nothing_done()
            return self._written(key, row.tenant_id, row.now, change, write_id, written), True

        def settle(cursor: Cursor[Any]) -> tuple[ApprovalRow | None, bool] | None:
            row = self._find(cursor, key)[1]
            return (row, True) if _is_of(row, write_id) else None

        return self._executor.write("PG_WRITE_ERROR", work, settle)

    def waiting(
        self, tenant_id: str | None, limit: int, after: tuple[int, int] | None
    ) -> tuple[list[ApprovalRow], bool]:
        """One page, oldest first, and whether more follow; it also ends at 64 MiB of records. Raises PG_LIST_ERROR."""
        after_us, after_id = after or (FIRST_MICROS, 0)
        parameters = {"tenant_id": tenant_id, "limit": limit + 1, "after_us": after_us, "after_id": after_id}

        def work(cursor: Cursor[Any]) -> tuple[list[ApprovalRow], bool]:
            rows = cursor.stream(self._sql["waiting"], parameters, binary=True, size=STREAM_ROWS)
            return page_of((ApprovalRow(*row) for row in rows), limit)

        return self._executor.read("PG_LIST_ERROR", work)

    def _find(self, cursor: Cursor[Any], key: Key) -> tuple[int, ApprovalRow | None]:
        found = cursor.execute(self._sql["find"], key).fetchone() or (0, None)
        if found[1] is None:
            self._session.clock.tell(found[0])
            return found[0], None
        return found[0], self._row(key, found)

    def _row(self, key: Key, found: tuple[Any, ...]) -> ApprovalRow:
        row = ApprovalRow(key["workflow_id"], key["step_id"], *found)
        self._session.clock.tell(row.now)
        return row

    def _insert(self, cursor: Cursor[Any], parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        try:
            return cursor.execute(self._sql["request"], parameters).fetchone()
        except psycopg.errors.InsufficientPrivilege:
            refuse_by_policies(self._session, cursor, parameters["tenant_id"])
            raise

    def _columns(self, change: ApprovalChange, write_id: str) -> dict[str, Any]:
        return {
            "state_data": StateText(change.state_data),
            "awaiting_us": change.awaiting_since,
            "content_sha256": change.content_sha256,
            "published_on": change.published_on,
            "write_id": write_id,
            "sent_us": self._session.clock.earliest(),
        }

    def _written(
        self, key: Key, tenant_id: str, now: int, change: ApprovalChange, write_id: str, written: tuple[Any, ...]
    ) -> ApprovalRow:
        row_id, revision, created_at, updated_at, table_oid = written
        self._session.stands_on(table_oid)
        return ApprovalRow(
            key["workflow_id"],
            key["step_id"],
            now,
            row_id,
            tenant_id,
            "approval",
            change.state_data,
            revision,
            write_id,
            created_at,
            updated_at,
            change.awaiting_since,
            change.content_sha256,
            change.published_on,
        )


def _is_of(row: ApprovalRow | None, write_id: str) -> bool:
    return row is not None and row.write_id == write_id
