"""What the worker asks of PostgreSQL, one method a question. Codes and semantics: contract, sections 3 and 4."""

from __future__ import annotations

import time
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from checkpoint.authority.adaptation import TextArray
from checkpoint.authority.execution import Executor
from checkpoint.authority.page import STREAM_ROWS, page_of
from checkpoint.authority.upsert import Upsert
from checkpoint.record import Digest, Life, Record, Workflow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from psycopg import Cursor

    from checkpoint.authority.approvals import ApprovalStore
    from checkpoint.settings import Settings

T = TypeVar("T")

PRUNE_CHUNK = 1000
DIGEST_PAGE = 2000
LAST_MICROS = 253_370_764_800_000_001  # after every updated_at that the table takes, the year 9999
LAST_ID = 2**63 - 1


class Health(msgspec.Struct, frozen=True):
    """What the server says of its ability to serve, and what it is."""

    writable: bool
    durable: bool
    row_security: bool
    server_version: str
    schema_version: int | None
    latency_ms: float


class Authority:
    """The store in PostgreSQL. Opens its connection at the first question."""

    def __init__(self, settings: Settings, on_store: Callable[[str], None], log: Callable[..., None]) -> None:
        self._executor = Executor(settings, on_store, log)
        self._session = self._executor.session
        self.upsert = Upsert(self._executor)

    @cached_property
    def approvals(self) -> ApprovalStore:
        """What is asked of PostgreSQL about approvals."""
        from checkpoint.authority.approvals import ApprovalStore

        return ApprovalStore(self._executor)

    def get(self, workflow_id: str, step_id: str, tenant_id: str | None) -> Record | None:
        """The record under a key, if it is of the tenant named. Raises PG_READ_ERROR."""
        parameters = {"workflow_id": workflow_id, "step_id": step_id, "tenant_id": tenant_id}

        def work(cursor: Cursor[Any]) -> Record | None:
            table_oid, owner, *fields = self._session.prepared("get").row(cursor.connection, parameters) or (None, None)
            self._session.stands_on(table_oid)
            return None if owner is None else Record(workflow_id, step_id, owner, *fields)

        return self._executor.read("PG_READ_ERROR", work)

    def get_together(
        self, keys: Sequence[tuple[str, str, str | None]], meanwhile: Callable[[], object]
    ) -> tuple[list[Record | None], set[int]]:
        """The same for several keys (workflow_id, step_id, tenant_id) at once, in their order. Raises PG_READ_ERROR.

        And the places of those whose states are too large to be held together: they are not read.
        """
        parameters = {
            "workflow_ids": TextArray([workflow_id.encode() for workflow_id, _, _ in keys]),
            "step_ids": TextArray([step_id.encode() for _, step_id, _ in keys]),
            "tenant_ids": TextArray([None if tenant_id is None else tenant_id.encode() for _, _, tenant_id in keys]),
        }

        def work(cursor: Cursor[Any]) -> tuple[list[Record | None], set[int]]:
            found: list[Record | None] = [None] * len(keys)
            large: set[int] = set()
            statement = self._session.prepared("get_together")
            rows = statement.rows(cursor.connection, parameters, self._executor.unwatched(meanwhile))
            for place, table_oid, owner, state, *rest in rows:
                self._session.stands_on(table_oid)
                if owner is not None and state is None:
                    large.add(place - 1)
                elif owner is not None:
                    workflow_id, step_id, _ = keys[place - 1]
                    found[place - 1] = Record(workflow_id, step_id, owner, state, *rest)
            return found, large

        return self._executor.read("PG_READ_ERROR", work, before_connecting=meanwhile)

    def page(
        self,
        workflow_id: str,
        tenant_id: str | None,
        limit: int,
        before: tuple[int, int] | None,
        *,
        include_state: bool,
    ) -> tuple[list[Record], bool]:
        """One page, newest first, and whether more follow; it also ends at 64 MiB of states. Raises PG_LIST_ERROR."""
        before_us, before_id = before or (LAST_MICROS, LAST_ID)
        parameters = {
            "workflow_id": workflow_id,
            "tenant_id": tenant_id,
            "limit": limit + 1,
            "before_us": before_us,
            "before_id": before_id,
        }
        statement = self._session.statement("list" if include_state else "list_without_state")

        def work(cursor: Cursor[Any]) -> tuple[list[Record], bool]:
            rows = cursor.stream(statement, parameters, binary=True, size=STREAM_ROWS)
            return page_of((Record(workflow_id, *row) for row in rows), limit)

        return self._executor.read("PG_LIST_ERROR", work)

    def workflows(self, tenant_id: str | None, limit: int, after: tuple[int, str, str] | None) -> list[Workflow]:
        """Up to `limit` workflows, newest first. Raises PG_LIST_ERROR."""
        before_us, after_workflow, after_tenant = after or (LAST_MICROS, "", "")
        parameters = {
            "tenant_id": tenant_id,
            "limit": limit,
            "before_us": before_us,
            "after_workflow": after_workflow,
            "after_tenant": after_tenant,
        }
        rows = self._executor.read("PG_LIST_ERROR", lambda cursor: self._all(cursor, "workflows", parameters))
        return [Workflow(*row) for row in rows]

    def newest(
        self, tenant_id: str, workflow_id: str | None, limit: int, consume: Callable[[Iterator[Record]], T]
    ) -> T:
        """What `consume` makes of the newest `limit` records, as one snapshot that streams. Raises REBUILD_FAILED.

        After a broken connection `consume` is called once more, from the start.
        """
        name = "newest_of_tenant" if workflow_id is None else "newest_of_workflow"
        parameters = {"tenant_id": tenant_id, "workflow_id": workflow_id, "limit": limit}

        def work(cursor: Cursor[Any]) -> T:
            rows = cursor.stream(self._session.statement(name), parameters, binary=True, size=STREAM_ROWS)
            return consume(Record(*row) for row in rows)

        return self._executor.read("REBUILD_FAILED", work)

    def digests(self, workflow_id: str | None, tenant_id: str | None) -> Iterator[Digest]:
        """Digests of all records in key order, read page by page. Raises VERIFY_FAILED."""
        name = "digests" if workflow_id is None else "digests_of_workflow"
        after_workflow, after_step = "", ""
        while True:
            parameters = {
                "workflow_id": workflow_id,
                "tenant_id": tenant_id,
                "after_workflow": after_workflow,
                "after_step": after_step,
                "limit": DIGEST_PAGE,
            }
            rows = self._executor.read("VERIFY_FAILED", partial(self._all, name=name, parameters=parameters))
            for row in rows:
                yield Digest(*row)
            if len(rows) < DIGEST_PAGE:
                return
            after_workflow, after_step = rows[-1][:2]

    def digests_of(self, keys: Iterable[tuple[str, str]], tenant_id: str | None) -> dict[tuple[str, str], Digest]:
        """Digests of the records under `keys`, as they stand now. Raises VERIFY_FAILED."""
        keys = tuple(keys)
        parameters = {
            "workflow_ids": [workflow_id for workflow_id, _ in keys],
            "step_ids": [step_id for _, step_id in keys],
            "tenant_id": tenant_id,
        }
        rows = self._executor.read("VERIFY_FAILED", lambda cursor: self._all(cursor, "digests_of_keys", parameters))
        return {(row[0], row[1]): Digest(*row) for row in rows}

    def delete(self, workflow_id: str, step_id: str | None, tenant_id: str) -> list[Life]:
        """The lives that ended. Raises PG_WRITE_ERROR, PG_WRITE_UNKNOWN."""
        name = "delete_workflow" if step_id is None else "delete_step"
        parameters = {
            "workflow_id": workflow_id,
            "step_id": step_id,
            "tenant_id": tenant_id,
            "sent_us": 0,
        }

        def work(cursor: Cursor[Any]) -> list[tuple[Any, ...]]:
            # What was acknowledged before is not later than the clock now; a delete may take a question more.
            (parameters["sent_us"],) = self._one(cursor, "server_time", {"ago_sec": 0}) or (0,)
            with cursor.connection.transaction():
                rows = self._all(cursor, name, parameters)
                if self._one(cursor, "rows_ahead", parameters) == (True,):  # the server's clock went back
                    rows += self._all(cursor, name, parameters | {"sent_us": LAST_MICROS})
            return rows

        return [Life(*row) for row in self._executor.write("PG_WRITE_ERROR", work, settle=None)]

    def prune(self, workflow_id: str | None, tenant_id: str | None, before_us: int) -> list[Life]:
        """Ends one chunk of lives; none when all are ended. Raises PG_WRITE_ERROR, PG_WRITE_UNKNOWN."""
        parameters = self._prune_scope(workflow_id, tenant_id, before_us)
        rows = self._executor.write(
            "PG_WRITE_ERROR", lambda cursor: self._all(cursor, "prune", parameters), settle=None
        )
        return [Life(*row) for row in rows]

    def prunable(self, workflow_id: str | None, tenant_id: str | None, before_us: int) -> int:
        """How many records a prune would remove. Raises PG_WRITE_ERROR."""
        parameters = self._prune_scope(workflow_id, tenant_id, before_us)
        row = self._executor.read("PG_WRITE_ERROR", lambda cursor: self._one(cursor, "prunable", parameters))
        return int(row[0]) if row else 0

    def server_time(self, ago_sec: int) -> int:
        """PostgreSQL's clock, less `ago_sec`, in microseconds since the epoch. Raises PG_WRITE_ERROR."""
        parameters = {"ago_sec": ago_sec}
        row = self._executor.read("PG_WRITE_ERROR", lambda cursor: self._one(cursor, "server_time", parameters))
        return int(row[0]) if row else 0

    def health(self) -> Health:
        """Whether the server takes and keeps writes. Raises PG_READ_ERROR."""

        def work(cursor: Cursor[Any]) -> Health:
            started = time.perf_counter()
            writable, durable, row_security = self._one(cursor, "health", {}) or (False, False, False)
            latency_ms = round((time.perf_counter() - started) * 1000, 3)
            greeting = self._session.greeting
            return Health(writable, durable, row_security, greeting.server_version, greeting.schema_version, latency_ms)

        return self._executor.read("PG_READ_ERROR", work)

    def address(self) -> str | None:
        """Where PostgreSQL is; None where secrets may be among the words."""
        return self._session.address.text()

    def close(self) -> None:
        """Ends the connection."""
        self._session.close()

    @staticmethod
    def _prune_scope(workflow_id: str | None, tenant_id: str | None, before_us: int) -> dict[str, Any]:
        return {"workflow_id": workflow_id, "tenant_id": tenant_id, "before_us": before_us, "limit": PRUNE_CHUNK}

    def _one(self, cursor: Cursor[Any], name: str, parameters: dict[str, Any]) -> tuple[Any, ...] | None:
        return cursor.execute(self._session.statement(name), parameters).fetchone()

    def _all(self, cursor: Cursor[Any], name: str, parameters: dict[str, Any]) -> list[tuple[Any, ...]]:
        return cursor.execute(self._session.statement(name), parameters).fetchall()
