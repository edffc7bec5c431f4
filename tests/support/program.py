"""The programs among the tests: what they have in common, and how a test runs one for a short while."""

from __future__ import annotations

import argparse
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.environment import worker_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.support.table import Table

REPOSITORY = Path(__file__).resolve().parents[2]


def run(
    name: str, about: str | None, seconds: float, work: Callable[[Path, int, float], tuple[Iterable[object], Table]]
) -> int:
    """Runs `work` with a folder that goes afterwards, a seed and a time, those of the command line; the exit status.

    It prints the seed first, then the lines and the table that `work` returns.
    """
    parser = argparse.ArgumentParser(prog=f"python -m tests.{name}", description=about)
    parser.add_argument("--seconds", type=float, default=seconds, help="how long it goes on (default: %(default)g)")
    parser.add_argument("--seed", type=int, default=None, help="the same again")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    sys.stdout.write(f"{name}: seed {seed}\n")
    sys.stdout.flush()
    folder = Path(tempfile.mkdtemp(prefix=f"checkpoint-{name}-"))
    folder.chmod(0o711)  # the account of the server has to pass
    try:
        lines, table = work(folder, seed, arguments.seconds)
        sys.stdout.write("".join(f"{line}\n" for line in lines))
        sys.stdout.write(str(table))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if table.right else 1


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
