"""Fixtures of these tests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support import steered_clock
from tests.support.gate import Gate
from tests.support.place import NO_HURRY, Place, key, place, shared_place, tenant, workflow
from tests.support.steered_clock import SteeredClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.responses import Responses
    from tests.support.worker import Worker

__all__ = ["key", "place", "tenant", "workflow"]


@pytest.fixture
def patient_worker(start_worker: StartWorker) -> Worker:
    """A worker of this test's own, whose cache writes are waited for."""
    return start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})


@pytest.fixture(scope="package")
def clock(tmp_path_factory: pytest.TempPathFactory) -> SteeredClock:
    """The clock of the workers that are steered. It only has to be moved relative to where it stands."""
    return SteeredClock(tmp_path_factory.mktemp("clock") / "hands")


@pytest.fixture(scope="package")
def steered(
    admin: Connection,
    database_url: str,
    responses: Responses,
    clock: SteeredClock,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Place]:
    """A place whose worker goes by `clock`."""
    folder = tmp_path_factory.mktemp("steered") / "data"
    with shared_place(admin, database_url, responses, folder, env=clock.env, argv=steered_clock.ARGV) as shared:
        yield shared


@pytest.fixture(scope="package")
def hurried(
    admin: Connection, database_url: str, responses: Responses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A place whose worker waits for a cache write no longer than by default, 50 ms."""
    folder = tmp_path_factory.mktemp("hurried") / "data"
    env = {"CHECKPOINT_CACHE_WAIT_MS": None}
    with shared_place(admin, database_url, responses, folder, env=env) as shared:
        yield shared


@pytest.fixture
def start_steered(start_worker: StartWorker, clock: SteeredClock) -> StartWorker:
    """Starts runners on `clock`, whose cache writes are waited for."""

    def start(env: Mapping[str, str | None] | None = None, **options: Any) -> Worker:
        changed = {"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY, **clock.env, **(env or {})}
        return start_worker(changed, argv=steered_clock.ARGV, **options)

    return start


@pytest.fixture
def gate(database_url: str) -> Iterator[Gate]:
    """A network to the run's PostgreSQL that the test can hold up, cut and close."""
    opened = Gate(database_url)
    yield opened
    opened.close()
