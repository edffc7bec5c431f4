"""Clusters for one test each, and their users."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from checkpoint.embedded import EmbeddedServer
from tests.embedded.user import FAST, User, server_pid, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator

# What only root can be shown: the change of account.
collect_ignore = [] if os.geteuid() == 0 else ["test_root_runs_it_as_another_account.py"]


class NewUser(Protocol):
    """Starts a user of the server in the folder; the arguments are those of User. Killed at the end of the test."""

    def __call__(self, folder: Path | str, **options: Any) -> User:
        """The user, who has not got the server yet."""
        ...


@pytest.fixture
def place(run_folder: Path) -> Iterator[Path]:
    """An empty folder that every account may pass. Servers that a test left in it end with the test."""
    path = Path(tempfile.mkdtemp(prefix="embedded-", dir=run_folder))
    path.chmod(0o711)
    yield path
    for pid_file in path.rglob("postmaster.pid"):
        end(pid_file.parent)
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def shared_cluster(run_folder: Path) -> Path:
    """The folder of a cluster that is not running. It is made once: initdb is by far the slowest step."""
    folder = Path(tempfile.mkdtemp(prefix="embedded-shared-", dir=run_folder)) / "pg"
    folder.parent.chmod(0o711)
    server = EmbeddedServer(folder, settings=FAST)
    server.acquire()
    server.release()
    return folder


@pytest.fixture
def cluster(place: Path, shared_cluster: Path) -> Iterator[Path]:
    """The folder of a cluster that is not running, in a place of the test's own. A test that harms it mends it."""
    folder = shared_cluster.rename(place / "pg")
    yield folder
    end(folder)
    folder.rename(shared_cluster)


@pytest.fixture
def user(place: Path) -> Iterator[NewUser]:
    """Starts users, which do not wait for one another."""
    started: list[User] = []

    def start(folder: Path | str, **options: Any) -> User:
        started.append(User(folder, cwd=place, **options))
        return started[-1]

    yield start
    for each in started:
        if each.process.poll() is None:
            each.kill()


def end(folder: Path) -> None:
    """Stops the server in the folder, if there is one, whatever state it is in."""
    pid = server_pid(folder)
    if pid is not None:
        os.kill(pid, signal.SIGCONT)
        os.kill(pid, signal.SIGQUIT)
        wait_for(lambda: server_pid(folder) is None, "the server did not end")
