"""Two tenants in one schema and one data folder, with everything kept that the one may not touch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support import cache_file
from tests.support.asking import done

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

SECRET_OF_A = "known-to-a-alone"
SHARED = "shared workflow"
OF_A = ((SHARED, "step-of-a-1"), (SHARED, "step-of-a-2"), ("workflow-of-a", "step-of-a-3"))
OF_B = ((SHARED, "step of b"), ("workflow of b", "step of b"))
KEY_OF_A = {"workflow_id": OF_A[0][0], "step_id": OF_A[0][1]}
KEY_OF_B = {"workflow_id": OF_B[0][0], "step_id": OF_B[0][1]}
MARKS_OF_A = (SECRET_OF_A, "-of-a-")  # in every state, in every id that b has no part in
AN_HOUR = 3600


class Tenants:
    """What is there of tenants a and b, and whether all of a is as it was."""

    def __init__(self, everybody: Worker, sql: Connection, folder: Path) -> None:
        self.everybody = everybody
        self._sql = sql
        self._folder = folder
        for tenant, keys in (("a", OF_A), ("b", OF_B)):
            for workflow_id, step_id in keys:
                state = {"whose": SECRET_OF_A if tenant == "a" else "known to b"}
                saved = done(
                    everybody, "save", workflow_id=workflow_id, step_id=step_id, tenant_id=tenant, state_data=state
                )
                assert saved["cache_written"]
        sql.execute("UPDATE workflow_checkpoints SET updated_at = updated_at - interval '2 hours'")  # so that prune may
        for tenant in ("a", "b"):
            done(everybody, "rebuild", tenant_id=tenant)
        lossy = {"workflow_id": "workflow-of-a", "step_id": "only-cached-of-a-", "state_data": {"whose": SECRET_OF_A}}
        done(everybody, "cache", tenant_id="a", **lossy)
        self._before = self._of_a()

    def unchanged(self) -> None:
        """Holds the rows and cache entries of a to what they were."""
        assert self._of_a() == self._before

    def _of_a(self) -> tuple[list[Any], list[Any]]:
        rows = self._sql.execute(
            "SELECT workflow_id, step_id, id, kind, state_data::text, revision, write_id, created_at, updated_at "
            "FROM workflow_checkpoints WHERE tenant_id = 'a' ORDER BY workflow_id, step_id"
        ).fetchall()
        entries = cache_file.query(
            self._folder, "SELECT * FROM checkpoint_cache WHERE tenant_id = 'a' ORDER BY workflow_id, step_id"
        )
        assert len(rows) == len(OF_A)
        assert len(entries) == len(OF_A) + 1
        return rows, entries


@pytest.fixture
def tenants(start_worker: StartWorker, sql: Connection, folder: Path) -> Tenants:
    """Both tenants' rows and cache entries, made by a process that is not pinned."""
    return Tenants(start_worker({"CHECKPOINT_CACHE_WAIT_MS": "10000"}), sql, folder)


def tells_nothing_of_a(worker: Worker) -> None:
    """Holds the last response of a worker to holding nothing of a."""
    for mark in MARKS_OF_A:
        assert mark.encode() not in worker.raw[-1]
