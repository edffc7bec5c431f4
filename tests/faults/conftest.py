"""A server that the tests may harm, networks that fail, and workers that do not wait long."""

from __future__ import annotations

import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.conftest import RUN_FOLDER
from tests.support.network import Network
from tests.support.own_server import OwnServer, OwnServers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

NOTES = "notes"  # in the folder of the run
CONNECT_SECONDS = 2
STATEMENT_SECONDS = 1
BUSY_MACHINE_SECONDS = 3  # beside the bound itself: what a machine costs that runs other tests too
# For what is about waiting; the rest of the tests should not fail where a busy machine takes a second for a statement.
SHORT = {
    "CHECKPOINT_CONNECT_TIMEOUT": str(CONNECT_SECONDS),
    "CHECKPOINT_STATEMENT_TIMEOUT": str(STATEMENT_SECONDS),
}
LONGER = {**SHORT, "CHECKPOINT_STATEMENT_TIMEOUT": "10"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tells what tests wrote down for people."""
    notes = config.stash[RUN_FOLDER] / NOTES
    if notes.exists():
        terminalreporter.line(notes.read_text(encoding="utf-8").rstrip())


def longest_answer(hosts: int = 1) -> float:
    """Seconds that one answer may take with the time-outs of these tests (contract, section 4)."""
    return 2 * (CONNECT_SECONDS * hosts + STATEMENT_SECONDS) + 1


class Here(Protocol):
    """Starts a worker on the server of these tests, with time-outs of some seconds; `env` is added to its environment."""

    def __call__(self, **env: str) -> Worker:
        """A started worker."""


@pytest.fixture(scope="session")
def own_servers(run_folder: Path) -> Iterator[OwnServers]:
    """Makes servers of the tests' own."""
    servers = OwnServers(run_folder)
    yield servers
    servers.end()


@pytest.fixture(scope="package")
def server(own_servers: OwnServers) -> OwnServer:
    """A server that runs. A test that harms it leaves it running and as it was."""
    server = own_servers.new()
    server.start()
    return server


@pytest.fixture
def own_schema() -> str:
    """A CHECKPOINT_SCHEMA that the server of these tests does not have yet."""
    return f"test_{uuid.uuid4().hex[:16]}"


@pytest.fixture
def here(start_offline_worker: StartWorker, server: OwnServer, own_schema: str) -> Here:
    """Starts workers on the server of these tests, in the schema of the test."""

    def start(**env: str) -> Worker:
        return start_offline_worker({"DATABASE_URL": server.url, "CHECKPOINT_SCHEMA": own_schema, **LONGER, **env})

    return start


@pytest.fixture
def through() -> Iterator[Callable[[str], Network]]:
    """Makes networks, each in front of the server of a URL."""
    made: list[Network] = []

    def make(url: str) -> Network:
        made.append(Network(url))
        return made[-1]

    yield make
    for network in made:
        network.mend()
        network.close()


@pytest.fixture
def bounded() -> Callable[..., AbstractContextManager[None]]:
    """Holds what happens inside to the time that the contract gives one answer (section 4)."""

    @contextmanager
    def bound(hosts: int = 1) -> Iterator[None]:
        begin = time.monotonic()
        yield
        assert time.monotonic() - begin <= longest_answer(hosts) + BUSY_MACHINE_SECONDS

    return bound
