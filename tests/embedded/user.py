"""Users of an embedded server, and the server, seen from a test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.environment import worker_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
REPOSITORY = Path(__file__).parents[2]
PATIENCE = 60.0


class User:
    """A process that uses the server in a folder; see user_program."""

    def __init__(
        self,
        folder: Path | str,
        *,
        env: Mapping[str, str | None] | None = None,
        settings: Mapping[str, str] = FAST,
        umask: int = -1,
        **options: Any,
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.embedded.user_program", str(folder), json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=worker_environment({"PYTHONPATH": str(REPOSITORY), **(env or {})}),
            umask=umask,
            **options,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.input, self.output = self.process.stdin, self.process.stdout

    def send(self, *command: str) -> None:
        """Gives a command and does not wait."""
        self.input.write(json.dumps(command) + "\n")
        self.input.flush()

    def answer(self) -> Any:
        """The next result; an AssertionError for a refusal."""
        verdict, result = self._next()
        assert verdict == "ok", result
        return result

    def refusal(self) -> str:
        """The sentence of the next answer, which must be a refusal."""
        verdict, result = self._next()
        assert verdict == "error", result
        return str(result)

    def sql(self, text: str) -> Any:
        """The first value of the first row."""
        self.send("sql", text)
        return self.answer()[0][0]

    def leave(self) -> int:
        """Ends its input and gives its exit status."""
        self.input.close()
        status = self.process.wait(PATIENCE)
        self.output.close()
        return status

    def kill(self) -> None:
        """SIGKILL: nothing is released by the process itself."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self.input.close()
        self.output.close()

    def _next(self) -> tuple[str, Any]:
        line = self.output.readline()
        assert line, f"the user ended with status {self.process.wait(PATIENCE)}"
        verdict, result = json.loads(line)
        return verdict, result


def server_pid(folder: Path) -> int | None:
    """The pid in the folder's pid file, if that process lives."""
    try:
        pid = int((folder / "postmaster.pid").read_text().splitlines()[0])
    except (FileNotFoundError, IndexError):
        return None
    return pid if alive(pid) else None


def alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    return process_status(pid).get("State", "Z")[0] != "Z"


def freeze(pid: int) -> None:
    """Stops the process, and returns when it stands: until then it would still take a signal that comes after this one."""
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: process_status(pid)["State"].startswith("T"), "the process did not stop")


def process_status(pid: int) -> dict[str, str]:
    """What the kernel tells of the process; nothing if there is none."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def running_pid(folder: Path) -> int:
    """The pid of the server that runs there; an AssertionError if none does."""
    pid = server_pid(folder)
    assert pid is not None, "no server runs"
    return pid


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Returns when the condition holds; an AssertionError after a minute."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


@contextmanager
def moved(folder: Path, there: Path) -> Iterator[Path]:
    """The folder is at another place for the time of the block."""
    try:
        yield folder.rename(there)
    finally:
        there.rename(folder)


def give_like(path: Path, folder: Path) -> None:
    """Makes the owner of the cluster the owner of a file that a test put into it."""
    owner = folder.stat()
    os.chown(path, owner.st_uid, owner.st_gid)
