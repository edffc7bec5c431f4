"""What an operator needs of the embedded server: its own psql, pg_dump and pg_restore (operations, Backup)."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from tests.embedded.user import server_pid
from tests.support.environment import worker_environment
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.embedded.conftest import NewUser


def run(url: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """`python -m checkpoint.embedded`, ended."""
    return subprocess.run(
        [sys.executable, "-m", "checkpoint.embedded", *words],
        cwd=RUNNER.parent,
        env={**worker_environment({"DATABASE_URL": url}), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_dump_brings_back_what_was_lost(cluster: Path, place: Path, user: NewUser) -> None:
    """While nobody uses it the server is started for the program, and stopped after it."""
    url, dump = f"embedded:{cluster}", place / "kept.dump"
    first = user(cluster)
    first.answer()
    first.send("sql", "CREATE TABLE dumped AS SELECT 42 AS value")
    first.answer()
    assert first.leave() == 0
    assert run(url, "pg_dump", "--format=custom", f"--file={dump}").returncode == 0
    assert server_pid(cluster) is None
    assert run(url, "psql", "-c", "DROP TABLE dumped").returncode == 0
    restored = run(url, "pg_restore", "--clean", "--if-exists", "--dbname=postgres", str(dump))
    assert (restored.returncode, restored.stderr) == (0, "")
    told = run(url, "psql", "-At", "-c", "SELECT value FROM dumped")
    assert (told.returncode, told.stdout) == (0, "42\n")


def test_a_program_joins_others_that_use_it(cluster: Path, user: NewUser) -> None:
    """The server that runs is used, and goes on afterwards; the exit status is the program's."""
    first = user(cluster)
    first.answer()
    assert run(f"embedded:{cluster}", "psql", "-At", "-c", "SELECT 1").stdout == "1\n"
    assert run(f"embedded:{cluster}", "psql", "-c", "no sql").returncode == 1
    assert first.sql("SELECT 1") == 1


def test_what_else_the_environment_names_is_not_taken(cluster: Path, place: Path) -> None:
    """Libpq's variables for other servers lead the program nowhere else."""
    services = place / "services"
    services.write_text("[elsewhere]\nhost=127.0.0.1\nport=1\n")
    elsewhere = {"PGSERVICE": "elsewhere", "PGSERVICEFILE": str(services), "PGHOSTADDR": "127.0.0.1", "PGPORT": "1"}
    told = run(f"embedded:{cluster}", "psql", "-At", "-c", "SHOW data_directory", **elsewhere)
    assert (told.returncode, told.stdout.strip()) == (0, str(cluster)), told.stderr


def test_no_server_is_made_for_a_program(place: Path) -> None:
    """A path that is mistyped does not give an empty dump."""
    done = run(f"embedded:{place / 'mistyped'}", "pg_dump")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert not (place / "mistyped").exists()


def test_wrong_words_are_one_line_and_status_2(cluster: Path) -> None:
    """No program, one that does not exist, no name, an option in its place, a server that is not embedded."""
    embedded = f"embedded:{cluster}"
    for url, *words in ((embedded,), (embedded, "psqll"), (embedded, ""), (embedded, "--help"), ("host=db", "psql")):
        done = run(url, *words)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
