"""The Makefile: one command that makes what it needs, answers on stdout, and tells everything else on stderr."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.environment import worker_environment
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Mapping

REPOSITORY = Path(__file__).resolve().parents[2]
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
PHONY = re.findall(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[0].split()
PATIENCE = 100
WORKER = """\
import os, sys
for line in sys.stdin:
    print(os.environ["DATABASE_URL"], line.strip())
"""
PROJECT = """\
[project]
name = "nothing"
dependencies = ["pip"]
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with the Makefile, a worker that echoes, and a project that needs no more than pip; there is a space in its path."""
    folder = tmp_path / "a tree"
    folder.mkdir()
    for name in ("Makefile", "tools/environment.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(REPOSITORY / name, folder / name)
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "runner.py").write_text(WORKER, encoding="utf-8")
    return folder


@pytest.fixture
def ready_tree(tree: Path) -> Path:
    """The same, and the environment seems to be made: its Python is the one of the tests."""
    (tree / ".venv" / "bin").mkdir(parents=True)
    python = tree / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    (tree / ".venv" / "ready").touch()
    return tree


def start(folder: Path, *arguments: str, env: Mapping[str, str | None] | None = None) -> subprocess.Popen[str]:
    """A make in a process group of its own, that knows nothing of the one that perhaps runs the tests."""
    above = dict.fromkeys(("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS"))
    return subprocess.Popen(
        ["make", f"PYTHON={shlex.quote(sys.executable)}", *arguments],
        cwd=folder,
        env=worker_environment({**above, **(env or {})}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )


def make(
    folder: Path, *arguments: str, requests: str = "", env: Mapping[str, str | None] | None = None
) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a make that is given `requests` on its stdin."""
    process = start(folder, *arguments, env=env)
    output, errors = process.communicate(requests, timeout=PATIENCE)
    return process.returncode, output, errors


def test_make_alone_lists_every_target() -> None:
    """The default is the help, and each target that is a command has its line in it."""
    status, listed, _ = make(REPOSITORY)
    assert (status, listed) == make(REPOSITORY, "help")[:2]
    assert status == 0
    assert re.findall(r"^  make (\S+)  +\S", listed, re.MULTILINE) == PHONY


def test_every_target_that_the_readme_names_exists() -> None:
    """What a reader is told to type is there."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:^|`|\| )make(?: -s)? ([a-z-]+)", readme, re.MULTILINE))
    assert {"run", "test", "check"} <= named <= set(PHONY)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        (None, "embedded:"),
        ("", "embedded:"),
        ("postgresql://me:p$w$(d)'\"@host/db", "postgresql://me:p$w$(d)'\"@host/db"),
    ],
)
def test_requests_go_to_the_worker_and_its_answers_alone_come_out(ready_tree: Path, given: str, used: str) -> None:
    """Every line of stdin arrives, a last one without its end too; DATABASE_URL is kept as it is, where there is one."""
    status, output, errors = make(ready_tree, "-s", "run", requests="one\ntwo", env={"DATABASE_URL": given})
    assert (status, output, errors) == (0, f"{used} one\n{used} two\n", "")


def test_first_starts_at_once_share_what_they_make_even_after_an_interrupted_one(tree: Path) -> None:
    """One was killed half way; of two started together one makes the environment anew, and both answer their line."""
    interrupted = start(tree, "-s", "run")
    until(lambda: os.path.lexists(tree / ".venv" / "bin" / "python"), "the environment is half made")
    os.killpg(interrupted.pid, signal.SIGKILL)
    interrupted.communicate(timeout=PATIENCE)
    assert not (tree / ".venv" / "ready").exists()

    both = [start(tree, "-s", "run") for _ in range(2)]
    for number, process in enumerate(both):
        assert process.stdin is not None
        process.stdin.write(f"request {number}\n")
        process.stdin.flush()
    results = [process.communicate(timeout=PATIENCE) for process in both]
    assert [process.returncode for process in both] == [0, 0], results
    assert [output for output, _ in results] == ["embedded: request 0\n", "embedded: request 1\n"]
    assert "".join(errors for _, errors in results).count("making a Python environment") == 1

    assert make(tree, "-s", "run", requests="again\n") == (0, "embedded: again\n", "")


def test_an_environment_older_than_the_project_file_is_completed(ready_tree: Path) -> None:
    """A new requirement is installed at the next start; where pip fails, that is told, and nothing is answered."""
    (ready_tree / "pyproject.toml").write_text(PROJECT.replace('"pip"', '"./is-not-here"'), encoding="utf-8")
    os.utime(ready_tree / ".venv" / "ready", (0, 0))
    status, output, errors = make(ready_tree, "-s", "run", requests="one\n")
    assert (status, output) == (2, "")
    assert "is-not-here" in errors
    assert "the Python environment is not ready: " in errors


def test_without_a_python_that_is_new_enough_it_says_what_is_needed(tree: Path) -> None:
    """A Python that cannot be used is passed over; none at all is told in words, on stderr."""
    old = tree / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    status, output, errors = make(tree, "-s", "run", "PYTHON=no-such-python ./old-python")
    assert (status, output) == (2, "")
    assert "Python 3.11 or newer" in errors
    assert "no-such-python ./old-python" in errors
    assert not (tree / ".venv").exists()


def test_where_no_docker_engine_answers_test_containers_says_what_it_needs() -> None:
    """The tests that insist on a container do not fall back to another PostgreSQL."""
    tests = (
        "-o",
        ".venv/ready-dev",
        f"PY={shlex.quote(sys.executable)}",
        "ARGS=tests/framing/test_lines.py",
        "test-containers",
    )
    status, output, errors = make(REPOSITORY, *tests, env={"DOCKER_HOST": "unix:///nowhere/docker.sock"})
    assert status == 2
    assert "Docker engine" in output + errors
    assert "make test" in output + errors


def test_clean_keeps_what_is_stored(ready_tree: Path) -> None:
    """The environment and the traces of the tools go; the data folder stays."""
    for folder in ("data/checkpoint_mcp", "package/__pycache__", ".mypy_cache"):
        (ready_tree / folder).mkdir(parents=True)
    assert make(ready_tree, "clean")[0] == 0
    left = {path.relative_to(ready_tree).as_posix() for path in ready_tree.rglob("*") if path.is_dir()}
    assert left == {"data", "data/checkpoint_mcp", "package", "tools"}
