"""The JSON-lines door pays nothing for the others, and the MCP door says what it needs where that is missing."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.environment import worker_environment
from tests.support.worker import PATIENCE, RUNNER

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FOREIGN = {"mcp", "mcp_types", "rich", "pydantic", "anyio", "asyncio", "logging"}
OF_OTHER_DOORS = re.compile(r"checkpoint\.(mcp|manager|in_process|results|cli)\b")
NOT_THERE = """
import sys
sys.modules["mcp"] = sys.modules["mcp_types"] = None
"""
SAVE = b'{"action":"cache","workflow_id":"wf","step_id":"s","state_data":{}}\n'
READ = b'{"action":"cached_get","workflow_id":"wf","step_id":"s"}\n'


def run(*arguments: str, env: Mapping[str, str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Python with these arguments, to its end."""
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, env=worker_environment(env), input=stdin, capture_output=True, timeout=PATIENCE, check=False
    )


def test_the_json_lines_door_imports_nothing_of_the_others(folder: Path) -> None:
    """Neither the SDK nor rich nor pydantic, nor a module of another door, whatever is asked."""
    env = {"CHECKPOINT_DATA_DIR": str(folder)}
    done = run("-X", "importtime", str(RUNNER), env=env, stdin=SAVE + READ)
    assert done.stdout.count(b'"success":true') == 2
    imported = {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}
    assert "checkpoint.worker" in imported
    assert not {name.partition(".")[0] for name in imported} & FOREIGN
    assert not [name for name in imported if OF_OTHER_DOORS.match(name)]


@pytest.mark.parametrize(
    "arguments",
    [(str(RUNNER), "--mcp"), ("-c", "import sys; from checkpoint.mcp.main import main; sys.exit(main())")],
    ids=["runner.py --mcp", "checkpoint-mcp"],
)
def test_without_the_sdk_one_line_says_how_to_get_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Exit status 2, nothing on stdout, and the command."""
    (tmp_path / "sitecustomize.py").write_text(NOT_THERE, encoding="utf-8")
    done = run(*arguments, env={"PYTHONPATH": f"{tmp_path}:{RUNNER.parent}"})
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert b"-m pip install 'mcp>=2,<3'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "env", "word"),
    [
        (("--mcp",), {"CHECKPOINT_CACHE_TTL": "soon"}, b"CHECKPOINT_CACHE_TTL"),
        (("--mcp", "more"), {}, b"usage"),
        (("--help",), {}, b"--mcp"),
    ],
)
def test_a_wrong_start_is_one_line_and_status_2(arguments: tuple[str, ...], env: dict[str, str], word: bytes) -> None:
    """The same for settings and for a command line that is not understood."""
    done = run(str(RUNNER), *arguments, env=env)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.count(b"\n") == 1
    assert word in done.stderr
