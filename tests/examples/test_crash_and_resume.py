"""The workflow of examples/crash_and_resume.py comes through kills: every finished step is done once, none is lost."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from tests.support.environment import worker_environment
from tests.support.process import until

if TYPE_CHECKING:
    from tests.support.database import Connection

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = REPOSITORY / "examples" / "crash_and_resume.py"
RUN = re.compile(r"^run \d+: skipped (\d+).*, did (\d+).*, (killed|finished)", re.MULTILINE)
PATIENCE = 100
WORKFLOW = ("--workflow-id", "some files")


class Start(Protocol):
    """Starts the example on the run's PostgreSQL, in the schema of the test; None takes a variable away."""

    def __call__(self, *arguments: str, **variables: str | None) -> subprocess.Popen[str]:
        """The started process, in a session of its own."""


@pytest.fixture
def start(database_url: str, schema: str, folder: Path) -> Start:
    """Starts the example."""
    given = {"DATABASE_URL": database_url, "CHECKPOINT_SCHEMA": schema, "CHECKPOINT_DATA_DIR": str(folder)}

    def started(*arguments: str, **variables: str | None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, str(EXAMPLE), *arguments],
            env=worker_environment({**given, **variables}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )

    return started


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """This repository's own files, where nobody edits them meanwhile, and some that are not to be read."""
    shutil.copytree(REPOSITORY / "schemas", tmp_path / "files")
    copy = shutil.copytree(
        REPOSITORY / "checkpoint" / "actions",
        tmp_path / "files" / "actions",
        ignore=shutil.ignore_patterns("__pycache__"),
    ).parent
    (copy / "program").write_bytes(b"\x7fELF\0")
    (copy / ".hidden").write_text("hidden", encoding="utf-8")
    (copy / "link").symlink_to(copy / "envelope.json")
    return copy


def steps_of(files: Path) -> Counter[str]:
    """Each step of the workflow, once."""
    names = [path.relative_to(files).as_posix() for path in files.rglob("*.*") if path.name != ".hidden"]
    assert len(names) > 20
    return Counter(["files", "report", *(f"{kind} {name}" for name in names for kind in ("hash", "words", "summary"))])


def revisions(sql: Connection) -> dict[str, int]:
    """Every saved step with its revision, from PostgreSQL itself."""
    return dict(sql.execute("SELECT step_id, revision FROM workflow_checkpoints").fetchall())


def is_right(report: Any, files: Path) -> None:
    """Holds a report to the files that it is about."""
    assert report["files"] == len(report["each"])
    for part in report["each"]:
        content = (files / part["path"]).read_bytes()
        assert part["sha256"] == hashlib.sha256(content).hexdigest()
        assert (part["bytes"], part["words"]) == (len(content), len(content.decode().split()))
        assert part["lines"] == len(content.decode().splitlines())


def processes_of_session(session: int) -> list[str]:
    """The command lines of what still runs in a session."""
    left = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[3]) == session:
                left.append((entry / "cmdline").read_text())
        except OSError:  # it has just ended
            continue
    return left


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_workflow_killed_at_random_steps_does_every_finished_step_once(
    start: Start, files: Path, sql: Connection, tmp_path: Path, seed: int
) -> None:
    """Killed three times: a run skips what was saved, every step is saved once, the report is right, no process is left."""
    journal = tmp_path / "journal"
    example = start(str(files), *WORKFLOW, "--crash", "--kills", "3", "--seed", str(seed), "--journal", str(journal))
    report, told = example.communicate(timeout=PATIENCE)
    assert example.returncode == 0, told
    expected = steps_of(files)
    assert revisions(sql) == dict.fromkeys(expected, 1)
    is_right(json.loads(report), files)

    runs = [(int(skipped), int(did), end) for skipped, did, end in RUN.findall(told)]
    ends = [end for *_, end in runs]
    assert (len(ends), ends[-1]) == (4, "finished"), told
    assert ends.count("killed") >= 2, told  # the last kill may come when all is done
    assert runs[0][0] == 0
    for (skipped, did, _), (skipped_next, _, _) in pairwise(runs):
        assert skipped_next - (skipped + did) in {0, 1}, told  # 1: saved, and killed before it could tell

    worked = Counter(journal.read_text(encoding="utf-8").splitlines())
    assert worked.keys() == expected.keys()
    cut_off = re.findall(r"^true: cut off .*: (.*)$", told, re.MULTILINE)[0].split(", ")
    assert (worked - expected).keys() <= set(cut_off), told
    until(lambda: not processes_of_session(example.pid), "every process of the example has ended")


def test_a_finished_workflow_run_again_does_nothing(start: Start, files: Path, tmp_path: Path) -> None:
    """The second run skips all steps and gives the same report; --fresh does them all again."""
    journal = tmp_path / "journal"
    reports = []
    for count, options in enumerate([(), (), ("--fresh",)]):
        example = start(str(files), *WORKFLOW, "--journal", str(journal), *options)
        report, told = example.communicate(timeout=PATIENCE)
        assert example.returncode == 0, told
        reports.append(report)
        done = Counter(line.partition(" ")[2] for line in told.splitlines() if line.startswith("did "))
        assert done == (Counter() if count == 1 else steps_of(files))
    assert len(set(reports)) == 1
    assert Counter(journal.read_text(encoding="utf-8").splitlines()) == steps_of(files) + steps_of(files)


def test_two_runs_at_once_save_each_step_once(start: Start, files: Path, sql: Connection) -> None:
    """Whoever saves a step first decides its state; the other run takes that one over, and both report the same."""
    examples = [start(str(files), *WORKFLOW) for _ in range(2)]
    results = [example.communicate(timeout=PATIENCE) for example in examples]
    assert [example.returncode for example in examples] == [0, 0], results
    assert results[0][0] == results[1][0]
    assert revisions(sql) == dict.fromkeys(steps_of(files), 1)


def test_the_report_goes_to_a_file_where_one_is_named(start: Start, files: Path, tmp_path: Path) -> None:
    """With --out nothing comes on stdout. The workflow id follows from the folder, so a second run finds the first."""
    out = tmp_path / "report.json"
    for verb in ("did", "skip"):
        example = start(str(files / "actions"), "--out", str(out))
        printed, told = example.communicate(timeout=PATIENCE)
        assert (example.returncode, printed) == (0, ""), told
        assert {line.partition(" ")[0] for line in told.splitlines()} == {verb}
    is_right(json.loads(out.read_text(encoding="utf-8")), files / "actions")


def test_an_unreachable_database_is_told_in_one_line(start: Start, files: Path) -> None:
    """Exit status 1, the code of the refusal, no traceback."""
    example = start(str(files), DATABASE_URL="postgresql://127.0.0.1:1/nowhere", CHECKPOINT_LOG_LEVEL="CRITICAL")
    printed, told = example.communicate(timeout=PATIENCE)
    assert (example.returncode, printed) == (1, "")
    assert told.startswith("the worker answered PG_LIST_ERROR: ")
    assert told.count("\n") == 1
