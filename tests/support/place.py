"""One worker shared by the tests of a package that need no other; each test takes ids of its own. Fixtures for a conftest."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support.asking import done
from tests.support.database import Connection, connection, fresh_schema
from tests.support.environment import worker_environment
from tests.support.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.responses import Responses

NO_HURRY = "10000"  # CHECKPOINT_CACHE_WAIT_MS, so that cache_written does not depend on the machine


class Place(NamedTuple):
    """`sql` is the test's own connection into the schema of the worker, `settings` its environment, `folder` its data."""

    worker: Worker
    sql: Connection
    folder: Path
    settings: dict[str, str | None]


@contextmanager
def shared_place(
    admin: Connection, database_url: str, responses: Responses, folder: Path, **options: Any
) -> Iterator[Place]:
    """A worker on a schema and a data folder of its own; the tables are there. `options`: `env` and those of Worker."""
    with fresh_schema(admin) as schema, connection(database_url, schema) as sql:
        settings: dict[str, str | None] = {
            "DATABASE_URL": database_url,
            "CHECKPOINT_SCHEMA": schema,
            "CHECKPOINT_DATA_DIR": str(folder),
            "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY,
            **options.pop("env", {}),
        }
        worker = Worker(worker_environment(settings), responses, **options)
        try:
            done(worker, "get", workflow_id="none", step_id="none")
            yield Place(worker, sql, folder, settings)
        finally:
            worker.kill()


@pytest.fixture(scope="package")
def place(
    admin: Connection, database_url: str, responses: Responses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A worker whose cache writes are waited for."""
    with shared_place(admin, database_url, responses, tmp_path_factory.mktemp("place") / "data") as shared:
        yield shared


@pytest.fixture
def key() -> dict[str, str]:
    """Ids of a checkpoint that no other test uses."""
    return {"workflow_id": f"wf-{uuid.uuid4().hex[:12]}", "step_id": "step"}


@pytest.fixture
def workflow(key: dict[str, str]) -> str:
    """The id of a workflow that no other test uses."""
    return key["workflow_id"]


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test uses."""
    return f"tenant-{uuid.uuid4().hex[:12]}"
