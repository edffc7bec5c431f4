"""A wheel, installed away from the checkout, has everything the doors need: schemas, SQL, types, commands."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hatchling.build import build_wheel

from tests.doors.peer import INITIALIZE, INITIALIZED, call, lines
from tests.support.descriptions import REPOSITORY, SCHEMAS
from tests.support.environment import worker_environment
from tests.support.worker import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.doors.conftest import Spot

SAVE = {"workflow_id": "wf", "step_id": "s", "state_data": {"n": 1}}
KEY = {"workflow_id": "wf", "step_id": "s"}
MANAGED = """
from checkpoint import CheckpointManager
with CheckpointManager() as manager:
    manager.save("wf", "s", {"n": 1})
    print(manager.get("wf", "s").state_text)
"""


class Installed(NamedTuple):
    """Where the wheel is, and where it was installed."""

    wheel: Path
    target: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel of this checkout, built and installed; its requirements are those of the tests."""
    folder = tmp_path_factory.mktemp("wheel")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(REPOSITORY)
        wheel = folder / build_wheel(str(folder))
    target = folder / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile"]
    subprocess.run([*pip, "--target", str(target), str(wheel)], check=True, timeout=PATIENCE, capture_output=True)
    return Installed(wheel, target)


def run(
    installed: Installed, cwd: Path, command: list[str], settings: Mapping[str, str | None], stdin: bytes = b""
) -> str:
    """What the command prints in an empty folder, where only the installed package is to be found."""
    cwd.mkdir()
    env = worker_environment({**settings, "PYTHONPATH": str(installed.target)})
    done = subprocess.run(command, env=env, cwd=cwd, input=stdin, capture_output=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_everything_is_inside(installed: Installed) -> None:
    """Every schema, every SQL file, the marker of typing, the page of reports; nothing of the tests."""
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    assert {f"checkpoint/schemas/{path.name}" for path in SCHEMAS.iterdir()} <= names
    assert {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "checkpoint").rglob("*.sql")} <= names
    assert {"checkpoint/py.typed", "checkpoint/report_page.html"} <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"checkpoint"}


def test_each_door_saves_and_gets(installed: Installed, here: Spot, tmp_path: Path) -> None:
    """The JSON lines, MCP and the command line by their commands, Python by its import."""
    scripts = installed.target / "bin"
    requests = lines({"action": "save", **SAVE}, {"action": "get", **KEY})
    printed = run(
        installed, tmp_path / "1", [sys.executable, str(scripts / "checkpoint-worker")], here.settings, requests
    )
    assert json.loads(printed.splitlines()[1])["data"]["state_data"] == {"n": 1}

    messages = lines(INITIALIZE, INITIALIZED, call(1, "save_checkpoint", SAVE), call(2, "get_checkpoint", KEY))
    printed = run(installed, tmp_path / "2", [sys.executable, str(scripts / "checkpoint-mcp")], here.settings, messages)
    answer = json.loads(printed.splitlines()[2])["result"]["structuredContent"]
    assert (answer["data"]["state_data"], answer["data"]["revision"]) == ({"n": 1}, 2)

    printed = run(installed, tmp_path / "3", [sys.executable, "-c", MANAGED], here.settings)
    assert printed == '{"n":1}\n'

    for number, command in enumerate(([str(scripts / "checkpoint")], ["-m", "checkpoint"])):
        python = [sys.executable, *command]
        run(installed, tmp_path / f"4{number}", [*python, "save", "wf", "s", '{"n": 4}'], here.settings)
        assert run(installed, tmp_path / f"5{number}", [*python, "get", "wf", "s", "--raw"], here.settings) == (
            '{"n": 4}\n'
        )
    run(installed, tmp_path / "6", [*python, "verify"], here.settings)
    assert len(list((here.folder / "reports").glob("*.html"))) == 1
