"""`python -m checkpoint` as a process: with pipes, as a script has it, or on a terminal of 80 columns, as a person has it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import select
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.environment import worker_environment
from tests.support.forks import FORKS

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "checkpoint")
PATIENCE = 60.0
COLUMNS = 80
STEERING = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Done(NamedTuple):
    """How a command ended."""

    status: int
    out: str
    err: str


class CommandLine:
    """Commands with the same settings; PYTHONPATH leads to the package from any folder."""

    package = REPOSITORY
    """Where PYTHONPATH leads."""

    def __init__(self, settings: Mapping[str, str | None], cwd: Path) -> None:
        self._settings = {"PYTHONPATH": str(REPOSITORY), **settings}
        self._cwd = cwd

    def __call__(self, *words: str, stdin: bytes = b"", **changes: str | None) -> Done:
        """Runs one command with its output taken; `changes` are to its environment."""
        environment = worker_environment({**self._settings, **changes})
        if self.package == REPOSITORY and not any(name.startswith(("PYTHON", "LC_", "LANG")) for name in changes):
            status, out, err = FORKS.run(words, environment, self._cwd, stdin)
            return Done(status, out.decode(), err.decode())
        done = subprocess.run(
            [*PROGRAM, *words],
            input=stdin,
            capture_output=True,
            cwd=self._cwd,
            env=environment,
            timeout=PATIENCE,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Starts one command, whose stdout and stderr are read as text."""
        env = worker_environment(self._settings)
        return subprocess.Popen(
            [*PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self._cwd,
            env=env,
        )

    def piped_to(self, reader: str, *words: str) -> Done:
        """Runs one command whose stdout goes through a shell command, of which `out` and `status` are."""
        done = subprocess.run(
            ["sh", "-c", f'"$@" | {reader}', "sh", *PROGRAM, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self._cwd,
            env=worker_environment(self._settings),
            timeout=PATIENCE,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def at_terminal(self, *words: str, keys: str = "", **changes: str | None) -> Done:
        """Runs one command on a terminal where `keys` are typed; stdout and stderr both come as `out`, as they came."""
        ours, its = os.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        terminal = {"TERM": "xterm-256color", "COLUMNS": None, "LINES": None, "NO_COLOR": None}
        process = subprocess.Popen(
            [*PROGRAM, *words],
            stdin=its,
            stdout=its,
            stderr=its,
            cwd=self._cwd,
            env=worker_environment({**self._settings, **terminal, **changes}),
            start_new_session=True,
        )
        os.close(its)
        os.write(ours, keys.encode())
        seen = _read_to_the_end(ours)
        os.close(ours)
        return Done(process.wait(PATIENCE), seen.decode().replace("\r\n", "\n"), "")


def _read_to_the_end(terminal: int) -> bytes:
    seen = b""
    deadline = time.monotonic() + PATIENCE
    while True:
        ready, _, _ = select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"the command does not end; so far: {seen!r}"
        try:
            data = os.read(terminal, 65536)
        except OSError as error:
            if error.errno != errno.EIO:  # what Linux says when nobody has the other end any more
                raise
            return seen
        if not data:
            return seen
        seen += data


def unstyled(screen: str) -> str:
    """The text of a screen, without colours and the steering of the cursor."""
    return STEERING.sub("", screen)
