#!/usr/bin/env python3
"""Makes `.venv`, or completes it: `python3 tools/environment.py [EXTRA ...]`. The Makefile calls it.

Installed are the dependencies of pyproject.toml, with those of the named extras; not the project, which runs from its
folder. pip is used as the user has configured it. Any number of these may run at once: one works, the others wait and
find the work done. What an interrupted one left behind is thrown away and made anew. Progress is told on stderr. The
exit status is 0 when the environment is ready.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tomllib
from typing import IO, Any

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROJECT = os.path.join(FOLDER, "pyproject.toml")
ENVIRONMENT = os.path.join(FOLDER, ".venv")
PYTHON = os.path.join(ENVIRONMENT, "bin", "python")
UNFINISHED = os.path.join(ENVIRONMENT, "unfinished")
WORKS = "import pip, sys; sys.exit(sys.version_info < (3, 11))"


def main(extras: list[str]) -> int:
    """Makes the environment ready for `extras`; the exit status."""
    stamps = [os.path.join(ENVIRONMENT, name) for name in ("ready", *(f"ready-{extra}" for extra in extras))]
    try:
        # The lock is on a file that is there anyway, and ends with the processes that hold it, however they end.
        with open(PROJECT, "r+b") as project:
            _lock(project)
            if not (_works() and all(_up_to_date(stamp) for stamp in stamps)):
                _make(_requirements(tomllib.load(project)["project"], extras), lock=project.fileno())
            for stamp in stamps:
                _touch(stamp)
    except OSError as error:
        _say(f"cannot make the Python environment: {error}")
        return 1
    except subprocess.CalledProcessError as error:
        _say(f"the Python environment is not ready: `{' '.join(error.cmd[:4])}` failed, the lines above say why")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _lock(file: IO[bytes]) -> None:
    """Waits until nobody else works on the environment."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _say("waiting for another process that makes the Python environment")
        fcntl.flock(file, fcntl.LOCK_EX)


def _works() -> bool:
    """Whether the environment has a Python that can install packages, and nothing half made."""
    if os.path.exists(UNFINISHED) or not os.path.exists(PYTHON):
        return False
    return subprocess.run([PYTHON, "-c", WORKS], stderr=subprocess.DEVNULL, check=False).returncode == 0  # noqa: S603


def _up_to_date(stamp: str) -> bool:
    return os.path.exists(stamp) and os.stat(stamp).st_mtime_ns >= os.stat(PROJECT).st_mtime_ns


def _requirements(project: dict[str, Any], extras: list[str]) -> list[str]:
    optional = project.get("optional-dependencies", {})
    return [*project["dependencies"], *(requirement for extra in extras for requirement in optional[extra])]


def _make(requirements: list[str], *, lock: int) -> None:
    """Makes the environment, where there is none that works, and installs."""
    if not _works():
        _say(f"making a Python environment in {ENVIRONMENT}; this is done once")
        if os.path.lexists(ENVIRONMENT):
            shutil.rmtree(ENVIRONMENT)
        os.mkdir(ENVIRONMENT)
        _touch(UNFINISHED)
        _run([sys.executable, "-m", "venv", ENVIRONMENT], lock)
    _touch(UNFINISHED)
    _say("installing the packages that pyproject.toml asks for")
    _run([PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements], lock)
    os.remove(UNFINISHED)


def _run(command: list[str], lock: int) -> None:
    """Runs a program to its end, which holds the lock too: it may outlive this process, if that is killed."""
    # A user's `user = true` in pip's configuration does not go together with any virtual environment.
    variables = {**os.environ, "PIP_USER": "0"}
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=2, pass_fds=(lock,), env=variables)  # noqa: S603


def _touch(path: str) -> None:
    with open(path, "wb"):
        os.utime(path)


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
