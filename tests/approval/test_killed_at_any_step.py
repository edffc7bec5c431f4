"""kill -9 between any two steps of an `approve`: one more `approve` ends in completed, or tells the truth."""

from __future__ import annotations

import itertools
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint.approval.place import TEMPORARY
from tests.approval.asking import approve, ask, data_of, decide, status

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.worker import Worker

KILLED_RUNNER = Path(__file__).with_name("killed_runner.py")
KILLED = -9
STARTED_AHEAD = 3
REPORT = "A report of several lines.\n" * 100
STEPS = {"begin", "statement", "mkdir", "open", "write", "fsync", "link", "unlink", "commit", "cache"}


class Victim:
    """A runner that will be killed at a point of an `approve`, and the approval of which it is."""

    def __init__(self, start_worker: StartWorker, healer: Worker, artifacts: Path, kill_at: str, **env: str) -> None:
        self.step = f"killed-at-{kill_at}"
        self.file = artifacts / self.step / "report.md"
        self.token = ""
        self.killed = False
        self.before: str | None = None
        self._healer = healer
        self._runner = start_worker({"KILL_AT": kill_at, **env}, argv=(sys.executable, str(KILLED_RUNNER)))

    def strike(self) -> Victim:
        """Has it approve; it does not come back, or has passed all its points."""
        asked = ask(self._healer, self.step, report=REPORT, output=f"{self.step}/report.md")
        self.token = asked["approval_token"]
        self._runner.send(decide("approve", self.step, self.token))
        self._runner.close_input()
        self.killed = self._runner.wait() == KILLED
        if self.killed:
            self.before = self._runner.stderr.rpartition("killed before ")[2].strip()
        return self

    def holds(self) -> None:
        """What must be true at every moment: no part of a file under its name, and nothing completed without it."""
        if self.file.exists():
            assert self.file.read_text(encoding="utf-8") == REPORT, self.before
        if status(self._healer, self.step) == "completed":
            assert self.file.exists(), self.before

    def heals(self) -> None:
        """One more `approve` of the same token completes, and the file is right."""
        data = data_of(approve(self._healer, self.step, self.token))
        assert (data["status"], data["verified"]) == ("completed", True), self.before
        assert self.file.read_text(encoding="utf-8") == REPORT
        others = {path.name for path in self.file.parent.iterdir()} - {self.file.name}
        assert all(TEMPORARY.fullmatch(name) for name in others), others


@pytest.fixture
def healer(worker: Worker) -> Worker:
    """A runner that lives on."""
    return worker


def test_every_step_heals(start_worker: StartWorker, healer: Worker, artifacts: Path) -> None:
    """Before each call that matters, and in the middle of each write, until the victim survives all of them."""
    seen = set()
    numbers = itertools.count(1)
    ready = deque(Victim(start_worker, healer, artifacts, str(next(numbers))) for _ in range(STARTED_AHEAD))
    while ready:
        ready.append(Victim(start_worker, healer, artifacts, str(next(numbers))))
        victim = ready.popleft().strike()
        victim.holds()
        victim.heals()
        if not victim.killed:
            break
        seen.add(victim.before)
    assert seen >= STEPS


def test_a_published_file_whose_record_was_not_written_is_a_yes(
    start_worker: StartWorker, healer: Worker, artifacts: Path
) -> None:
    """Killed between file and record: it still waits, the file stands, and a no is told that it comes too late."""
    victim = Victim(start_worker, healer, artifacts, "commit:1").strike()
    assert (victim.killed, victim.file.exists(), status(healer, victim.step)) == (True, True, "awaiting-approval")
    before = victim.file.stat()
    assert healer.request(decide("reject", victim.step, victim.token))["code"] == "ALREADY_DECIDED"
    assert data_of(approve(healer, victim.step, victim.token))["already_completed"]
    assert victim.file.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize("kill_at", ["rename:1", "unlink:1", "commit:9"])
def test_a_file_system_without_links_does_as_well(
    kill_at: str, start_worker: StartWorker, healer: Worker, artifacts: Path
) -> None:
    """A rename that cannot replace takes the link's place, killed before it, killed after it, and not killed."""
    victim = Victim(start_worker, healer, artifacts, kill_at, NO_LINKS="1").strike()
    assert victim.killed == (kill_at != "commit:9")
    victim.holds()
    victim.heals()


def test_without_links_and_such_renames_a_part_of_a_file_is_refused(
    start_worker: StartWorker, healer: Worker, artifacts: Path
) -> None:
    """The file is made under its name; killed in the middle, its part is a conflict for a person, never completed."""
    env = {"NO_LINKS": "1", "NO_RENAMES": "1"}
    whole = Victim(start_worker, healer, artifacts, "commit:9", **env).strike()
    whole.holds()
    whole.heals()
    part = Victim(start_worker, healer, artifacts, "write:4", **env).strike()
    assert 0 < len(part.file.read_text(encoding="utf-8")) < len(REPORT)
    answer = approve(healer, part.step, part.token)
    assert (answer["code"], status(healer, part.step)) == ("OUTPUT_CONFLICT", "awaiting-approval")
    part.file.unlink()
    part.heals()
