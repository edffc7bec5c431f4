"""Decisions at one instant from several processes: one file, one move, and everybody is told the truth."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.approval.asking import REPORT, ask, decide, status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

PROCESSES = 5
ROUNDS = 8


@pytest.fixture
def workers(start_worker: StartWorker) -> list[Worker]:
    """Several processes, each with its connection open."""
    started = [start_worker() for _ in range(PROCESSES)]
    for worker in started:
        worker.send({"action": "pending"})
    for worker in started:
        worker.read_line()
    return started


def test_twenty_approvals_at_one_instant_are_one(workers: list[Worker], sql: Connection, artifacts: Path) -> None:
    """One file and one revision; one process is told that it completed, nineteen times that it was completed."""
    asked = ask(workers[0], "s")
    yes = decide("approve", "s", asked["approval_token"])
    for worker in workers:
        for _ in range(4):
            worker.send(yes)
    answers = [answer for worker in workers for answer in worker.read_lines(4)]
    assert [answer["code"] for answer in answers] == [None] * 20
    assert Counter(answer["data"]["already_completed"] for answer in answers) == {False: 1, True: 19}
    assert {answer["data"]["decided_at"] for answer in answers} == {answers[0]["data"]["decided_at"]}
    assert [path.name for path in artifacts.iterdir()] == [os.path.basename(asked["output"])]
    assert sql.execute("SELECT revision FROM workflow_checkpoints").fetchall() == [(2,)]


def test_yes_against_no_at_one_instant_has_one_winner(workers: list[Worker], artifacts: Path) -> None:
    """Whoever comes second is told; the file is there exactly where yes won."""
    one, other = workers[:2]
    for turn in range(ROUNDS):
        step = f"s{turn}"
        asked = ask(one, step)
        yes, no = (decide(action, step, asked["approval_token"]) for action in ("approve", "reject"))
        (one if turn % 2 else other).send(yes)
        (other if turn % 2 else one).send(no)
        first, second = ((one if turn % 2 else other).read_line(), (other if turn % 2 else one).read_line())
        assert sorted([first["success"], second["success"]]) == [False, True]
        assert "ALREADY_DECIDED" in (first["code"], second["code"])
        assert status(one, step) == ("completed" if first["success"] else "rejected")
        assert (artifacts / os.path.basename(asked["output"])).exists() == first["success"]


def test_different_approvals_for_one_file_have_one_winner(workers: list[Worker], artifacts: Path) -> None:
    """Five reports want one name: one gets it, whole; the others are OUTPUT_CONFLICT and still wait."""
    tokens = [
        ask(worker, f"s{number}", report=REPORT + str(number), output="one.md")["approval_token"]
        for number, worker in enumerate(workers)
    ]
    for number, worker in enumerate(workers):
        worker.send(decide("approve", f"s{number}", tokens[number]))
    codes = [worker.read_line()["code"] for worker in workers]
    assert Counter(codes) == {None: 1, "OUTPUT_CONFLICT": PROCESSES - 1}
    assert (artifacts / "one.md").read_text(encoding="utf-8") == REPORT + str(codes.index(None))
    waiting = {number for number in range(PROCESSES) if status(workers[0], f"s{number}") == "awaiting-approval"}
    assert waiting == set(range(PROCESSES)) - {codes.index(None)}
    assert [path.name for path in artifacts.iterdir()] == ["one.md"]
