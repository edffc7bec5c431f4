"""examples/shell.sh does in plain shell what a workflow needs: it skips what is saved, whatever its ids are made of."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.environment import worker_environment

if TYPE_CHECKING:
    from tests.conftest import StartWorker

SCRIPT = Path(__file__).resolve().parents[2] / "examples" / "shell.sh"
DONE = ["fetch: done", 'count "words": done', "publish: done", "3 steps are saved; the cache agrees: true"]
AGAIN = [
    "fetch: done before, fetch took no time",
    'count "words": done before, count "words" took no time',
    "publish: done before, publish took no time",
    DONE[-1],
]


class Ended(NamedTuple):
    """How a run ended."""

    status: int
    lines: list[str]
    errors: str


@pytest.fixture
def path_without_jq(tmp_path: Path) -> str:
    """A PATH with what the script cannot do without."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("sh", "dirname"):
        (tools / name).symlink_to(str(shutil.which(name)))
    return str(tools)


def run(workflow: str, settings: dict[str, str | None]) -> Ended:
    """One run of the script."""
    ended = subprocess.run(
        ["sh", str(SCRIPT), workflow],
        capture_output=True,
        text=True,
        env=worker_environment({"PYTHON": sys.executable, **settings}),
        timeout=60,
        check=False,
    )
    return Ended(ended.returncode, ended.stdout.splitlines(), ended.stderr)


@pytest.mark.parametrize("jq", [True, False], ids=["jq", "python"])
def test_it_goes_on_where_it_was(
    database_url: str, schema: str, folder: Path, path_without_jq: str, start_worker: StartWorker, jq: bool
) -> None:
    """What a first run has saved a second one skips; quotes and backslashes in ids arrive as they are."""
    if jq and shutil.which("jq") is None:
        pytest.skip("no jq on PATH; without one the script uses Python, as the other of these tests shows")
    settings: dict[str, str | None] = {
        "DATABASE_URL": database_url,
        "CHECKPOINT_SCHEMA": schema,
        "CHECKPOINT_DATA_DIR": str(folder),
    }
    if not jq:
        settings["PATH"] = path_without_jq
    workflow = r'a "workflow" \n $HOME `é`'
    assert run(workflow, settings) == Ended(0, DONE, "")
    assert run(workflow, settings) == Ended(0, AGAIN, "")
    listed = start_worker().ask({"action": "list", "workflow_id": workflow})["checkpoints"]
    assert [row["step_id"] for row in listed] == ["publish", 'count "words"', "fetch"]


def test_a_refusal_ends_it_with_the_reason(folder: Path) -> None:
    """Where the answer is no success, its error is told on stderr, and the status is not 0."""
    ended = run("wf", {"DATABASE_URL": "postgresql://127.0.0.1:9/none", "CHECKPOINT_DATA_DIR": str(folder)})
    assert (ended.status, ended.lines) == (1, [])
    assert "cannot be reached" in ended.errors.splitlines()[-1]
