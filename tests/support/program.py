"""The programs among the tests, run by a test for a short while."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.environment import worker_environment

REPOSITORY = Path(__file__).resolve().parents[2]


def table_of(program: str, *arguments: str, server: str | None = None) -> str:
    """What `python -m tests.PROGRAM` prints; AssertionError with it where the exit status is not 0.

    `server` is the URL of the PostgreSQL that it is to use.
    """
    done = subprocess.run(
        [sys.executable, "-m", f"tests.{program}", *arguments],
        cwd=REPOSITORY,
        env=worker_environment({"TEST_DATABASE_URL": server}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
