"""Two tenants in one schema and one data folder, with everything kept that the one may not touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support import cache_file
from tests.support.asking import done
from tests.support.database import Connection, connection, fresh_schema
from tests.support.environment import worker_environment
from tests.support.worker import Worker
from tests.tenants.roles import as_role, roles

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.responses import Responses

__all__ = ["as_role", "roles"]

SECRET_OF_A = "known-to-a-alone"
SHARED = "shared workflow"
OF_A = ((SHARED, "step-of-a-1"), (SHARED, "step-of-a-2"), ("workflow-of-a", "step-of-a-3"))
OF_B = ((SHARED, "step of b"), ("workflow of b", "step of b"))
KEY_OF_A = {"workflow_id": OF_A[0][0], "step_id": OF_A[0][1]}
KEY_OF_B = {"workflow_id": OF_B[0][0], "step_id": OF_B[0][1]}
ALL_OF_A = {"workflow_id": "workflow-of-a"}
CACHED_OF_A = {"workflow_id": "workflow-of-a", "step_id": "only-cached-of-a-"}
APPROVAL_OF_A = {"workflow_id": "workflow-of-a", "step_id": "approval-of-a-"}
ASKED_BY_A = {"input": {"n": 1}, "report": SECRET_OF_A}
MARKS_OF_A = (SECRET_OF_A, "-of-a-")  # in every state of a's, in every id that b has no part in
AN_HOUR = 3600
NO_HURRY = "10000"  # CHECKPOINT_CACHE_WAIT_MS, so that what is cached does not depend on the machine
AGE = "UPDATE workflow_checkpoints SET updated_at = updated_at - interval '2 hours' WHERE tenant_id = %s"


class Tenants:
    """What there is of tenants a and b, and whether all of a is as it was.

    `everybody` is a process that is not pinned, `pinned` one of b's; `settings` are their environment without the pin.
    """

    def __init__(self, settings: dict[str, str | None], responses: Responses, sql: Connection, folder: Path) -> None:
        self.settings = settings
        self.folder = folder
        self._sql = sql
        self.everybody = Worker(worker_environment(settings), responses)
        self.pinned = Worker(worker_environment({**settings, "CHECKPOINT_TENANT": "b"}), responses)
        self._save("a", OF_A, SECRET_OF_A)
        asked = done(self.everybody, "request_approval", tenant_id="a", **APPROVAL_OF_A, **ASKED_BY_A)
        self.token_of_a: str = asked["approval_token"]
        sql.execute(AGE, ("a",))
        done(self.everybody, "rebuild", tenant_id="a")
        done(self.everybody, "cache", tenant_id="a", **CACHED_OF_A, state_data={"whose": SECRET_OF_A})
        self._before = self._of_a()
        self.rows_of_a = len(self._before[0])
        assert len(self._before[1]) == self.rows_of_a + 1 == len(OF_A) + 2

    def renew_b(self) -> None:
        """The rows and cache entries of b as they were at first, and none of other tenants but a."""
        self._sql.execute("DELETE FROM workflow_checkpoints WHERE tenant_id <> 'a'")
        self._save("b", OF_B, "known to b")
        self._sql.execute(AGE, ("b",))
        done(self.everybody, "rebuild", tenant_id="b")

    def unchanged(self) -> None:
        """Holds the rows and cache entries of a to what they were."""
        assert self._of_a() == self._before

    def end(self) -> None:
        """Ends the processes."""
        for worker in (self.everybody, self.pinned):
            worker.kill()

    def _save(self, tenant: str, keys: tuple[tuple[str, str], ...], whose: str) -> None:
        for workflow_id, step_id in keys:
            state = {"whose": whose}
            done(self.everybody, "save", workflow_id=workflow_id, step_id=step_id, tenant_id=tenant, state_data=state)

    def _of_a(self) -> tuple[list[Any], list[Any]]:
        rows = self._sql.execute(
            "SELECT workflow_id, step_id, id, kind, state_data::text, revision, write_id, created_at, updated_at "
            "FROM workflow_checkpoints WHERE tenant_id = 'a' ORDER BY workflow_id, step_id"
        ).fetchall()
        entries = cache_file.query(
            self.folder, "SELECT * FROM checkpoint_cache WHERE tenant_id = 'a' ORDER BY workflow_id, step_id"
        )
        return rows, entries


@pytest.fixture(scope="package")
def both_tenants(
    admin: Connection, database_url: str, responses: Responses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tenants]:
    """Both tenants' rows and cache entries."""
    folder = tmp_path_factory.mktemp("tenants") / "data"
    with fresh_schema(admin) as schema, connection(database_url, schema) as sql:
        settings: dict[str, str | None] = {
            "DATABASE_URL": database_url,
            "CHECKPOINT_SCHEMA": schema,
            "CHECKPOINT_DATA_DIR": str(folder),
            "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY,
        }
        tenants = Tenants(settings, responses, sql, folder)
        try:
            yield tenants
        finally:
            tenants.end()


@pytest.fixture
def tenants(both_tenants: Tenants) -> Iterator[Tenants]:
    """The same, with b as at first; after every test a is as it was."""
    both_tenants.renew_b()
    yield both_tenants
    both_tenants.unchanged()


@pytest.fixture
def pinned(tenants: Tenants) -> Worker:
    """A process pinned to b, on the schema and the data folder of both."""
    return tenants.pinned


def tells_nothing_of_a(worker: Worker) -> None:
    """Holds the last response of a worker to holding nothing of a."""
    for mark in MARKS_OF_A:
        assert mark.encode() not in worker.raw[-1]
