"""Fixtures of every test: PostgreSQL, folders, and the runner as a process."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.support import every_code
from tests.support.database import Connection, connection, fresh_database, fresh_schema
from tests.support.environment import worker_environment
from tests.support.reached import Reached
from tests.support.responses import Responses
from tests.support.server import NoContainer, postgresql
from tests.support.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RUN_FOLDER = pytest.StashKey[Path]()
SERVER_NOTE = "server"


class StartWorker(Protocol):
    """Starts a runner; `env` is added to its environment, where None unsets. Further arguments are those of Worker."""

    def __call__(self, env: Mapping[str, str | None] | None = None, **options: Any) -> Worker:
        """A started runner."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """--containers."""
    parser.addoption("--containers", action="store_true", help="insist on PostgreSQL in a container")


def pytest_configure(config: pytest.Config) -> None:
    """One folder for the run, which its processes share. Not below pytest's own: a server account must reach it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    shared = getattr(config, "workerinput", {}).get("run_folder")
    config.stash[RUN_FOLDER] = Path(shared or tempfile.mkdtemp(prefix="checkpoint-tests-"))
    if shared is None:
        config.stash[RUN_FOLDER].chmod(0o711)
        config.add_cleanup(lambda: shutil.rmtree(config.stash[RUN_FOLDER], ignore_errors=True))
        config.pluginmanager.register(every_code.Judge(config, Reached(config.stash[RUN_FOLDER])))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tells each process of a parallel run (pytest-xdist) the folder of the run."""
    node.workerinput["run_folder"] = str(node.config.stash[RUN_FOLDER])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says which PostgreSQL it was."""
    note = config.stash[RUN_FOLDER] / SERVER_NOTE
    if note.exists():
        terminalreporter.line(f"PostgreSQL of this run: {note.read_text(encoding='utf-8')}")


def insists_on_container(config: pytest.Config) -> bool:
    """Whether only PostgreSQL in a container will do."""
    return bool(config.getoption("--containers")) or os.environ.get("CHECKPOINT_TEST_CONTAINERS") == "1"


@pytest.fixture(scope="session", autouse=True)
def container_first(request: pytest.FixtureRequest) -> None:
    """Where a container is insisted on and is not to be had, the run ends before its first test."""
    if insists_on_container(request.config):
        request.getfixturevalue("database_url")


@pytest.fixture(scope="session")
def run_folder(pytestconfig: pytest.Config) -> Path:
    """A folder that all processes of this run share, gone afterwards."""
    return pytestconfig.stash[RUN_FOLDER]


@pytest.fixture(scope="session")
def database_url(run_folder: Path, pytestconfig: pytest.Config) -> Iterator[str]:
    """Connection string of the run's PostgreSQL, as a role that may create schemas, databases and roles."""
    try:
        with postgresql(run_folder / "pg", insist_on_container=insists_on_container(pytestconfig)) as server:
            (run_folder / SERVER_NOTE).write_text(server.about, encoding="utf-8")
            yield server.url
    except NoContainer as error:
        pytest.exit(str(error), returncode=2)


@pytest.fixture(scope="session")
def admin(database_url: str) -> Iterator[Connection]:
    """An autocommit connection to the run's PostgreSQL that makes and drops what tests need."""
    with connection(database_url) as opened:
        yield opened


@pytest.fixture
def schema(admin: Connection) -> Iterator[str]:
    """A CHECKPOINT_SCHEMA that does not exist yet."""
    with fresh_schema(admin) as name:
        yield name


@pytest.fixture
def database(admin: Connection, database_url: str) -> Iterator[str]:
    """Connection string of a database of this test's own, empty."""
    with fresh_database(admin, database_url) as url:
        yield url


@pytest.fixture
def sql(database_url: str, schema: str) -> Iterator[Connection]:
    """The test's own autocommit connection, in the schema of the test."""
    with connection(database_url, schema) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The CHECKPOINT_DATA_DIR of the test; it does not exist yet."""
    return tmp_path / "data"


@pytest.fixture(scope="session")
def responses(run_folder: Path) -> Responses:
    """What each response is held to."""
    return Responses(Reached(run_folder))


@pytest.fixture
def start_offline_worker(responses: Responses, folder: Path) -> Iterator[StartWorker]:
    """Starts runners without DATABASE_URL: for what needs no PostgreSQL. Killed at the end of the test."""
    started: list[Worker] = []

    def start(env: Mapping[str, str | None] | None = None, **options: Any) -> Worker:
        changed = {"CHECKPOINT_DATA_DIR": str(folder), **(env or {})}
        started.append(Worker(worker_environment(changed), responses, **options))
        return started[-1]

    yield start
    for worker in started:
        worker.kill()


@pytest.fixture
def start_worker(start_offline_worker: StartWorker, database_url: str, schema: str) -> StartWorker:
    """Starts runners on the run's PostgreSQL, in the schema and the data folder of the test."""

    def start(env: Mapping[str, str | None] | None = None, **options: Any) -> Worker:
        return start_offline_worker(
            {"DATABASE_URL": database_url, "CHECKPOINT_SCHEMA": schema, **(env or {})}, **options
        )

    return start


@pytest.fixture
def worker(start_worker: StartWorker) -> Worker:
    """A runner on PostgreSQL."""
    return start_worker()


@pytest.fixture
def offline_worker(start_offline_worker: StartWorker) -> Worker:
    """A runner without PostgreSQL."""
    return start_offline_worker()
