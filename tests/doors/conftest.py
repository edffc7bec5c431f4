"""Doors on one schema and one data folder each: what the tests of this package share."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pytest

from checkpoint import CheckpointManager
from tests.doors.client import MODES, Session, session
from tests.doors.peer import Peer
from tests.support.database import Connection, connection, fresh_schema
from tests.support.place import NO_HURRY, key, workflow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.support.responses import Responses

__all__ = ["key", "workflow"]


class StartPeer(Protocol):
    """Starts a server spoken to line by line; `env` is added to its environment. Killed at the end of the test."""

    def __call__(self, env: Mapping[str, str | None] | None = None, **options: Any) -> Peer:
        """A started server."""


class Spot(NamedTuple):
    """A schema and a data folder that nobody else uses: the settings that lead there, and a way to look at them."""

    settings: dict[str, str | None]
    sql: Connection
    folder: Path


@contextmanager
def spot(admin: Connection, database_url: str, folder: Path) -> Iterator[Spot]:
    """A new one; the folder does not exist yet."""
    with fresh_schema(admin) as schema, connection(database_url, schema) as sql:
        settings: dict[str, str | None] = {
            "DATABASE_URL": database_url,
            "CHECKPOINT_SCHEMA": schema,
            "CHECKPOINT_DATA_DIR": str(folder),
            "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY,
        }
        yield Spot(settings, sql, folder)


class Era(NamedTuple):
    """A client connected in one era of the protocol."""

    version: str
    session: Session
    spot: Spot


@pytest.fixture(scope="package")
def eras(
    admin: Connection, database_url: str, responses: Responses, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Era]]:
    """One client for each era, each on a server of its own."""
    with ExitStack() as stack:
        opened = {}
        for version, mode in MODES.items():
            folder = tmp_path_factory.mktemp("era")
            place = stack.enter_context(spot(admin, database_url, folder / "data"))
            client = stack.enter_context(session(place.settings, responses, folder, mode))
            opened[version] = Era(version, client, place)
        yield opened


@pytest.fixture(params=list(MODES))
def era(request: pytest.FixtureRequest, eras: dict[str, Era]) -> Era:
    """Each of them in turn."""
    return eras[request.param]


@pytest.fixture
def here(admin: Connection, database_url: str, folder: Path) -> Iterator[Spot]:
    """A spot of this test's own."""
    with spot(admin, database_url, folder) as place:
        yield place


def opened(place: Spot) -> CheckpointManager:
    """A manager on that spot."""
    options: Any = {name.lower().removeprefix("checkpoint_"): value for name, value in place.settings.items()}
    return CheckpointManager(**options)


@pytest.fixture
def manager(here: Spot) -> Iterator[CheckpointManager]:
    """One on a spot of this test's own."""
    with opened(here) as manager:
        yield manager


@pytest.fixture
def start_peer(folder: Path) -> Iterator[StartPeer]:
    """Starts servers without DATABASE_URL, unless `env` has one."""
    started: list[Peer] = []

    def start(env: Mapping[str, str | None] | None = None, **options: Any) -> Peer:
        started.append(Peer({"CHECKPOINT_DATA_DIR": str(folder), **(env or {})}, **options))
        return started[-1]

    yield start
    for peer in started:
        peer.kill()
