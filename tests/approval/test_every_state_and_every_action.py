"""The table of docs/approval.md: every state of an approval, every action on it, and what comes of it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tests.approval.asking import REPORT, approve, ask, data_of, decide, key, request
from tests.support.descriptions import REPOSITORY
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.support.database import Connection
    from tests.support.worker import Worker

PAGE = REPOSITORY / "docs" / "approval.md"
OTHER_INPUT = {"source": "another"}
STATES = (
    "none", "awaiting", "expired", "published", "taken", "completed", "missing", "changed", "rejected", "corrupt", "checkpoint",
)  # fmt: skip
ACTIONS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "ask": lambda step, _: request(step),
    "ask without report": lambda step, _: request(step, report=None),
    "ask with renew": lambda step, _: request(step, renew=True, expires_in_sec=600),
    "ask about another input": lambda step, _: request(step, input=OTHER_INPUT),
    "approve": lambda step, token: decide("approve", step, token),
    "approve another input": lambda step, token: decide("approve", step, token, input=OTHER_INPUT),
    "reject": lambda step, token: decide("reject", step, token),
    "decide with a wrong token": lambda step, _: decide("approve" if int(step[1:]) % 2 else "reject", step, "0" * 64),
    "pending": lambda *_: {"action": "pending"},
    "save": lambda step, _: {"action": "save", **key(step), "state_data": {}},
    "delete": lambda step, _: {"action": "delete", **key(step)},
}


class Walk:
    """Approvals of one runner, brought into each state and looked at from outside."""

    def __init__(self, worker: Worker, sql: Connection, artifacts: Path) -> None:
        self._worker = worker
        self._sql = sql
        self._artifacts = artifacts
        self.tokens: dict[str, str] = {}

    def file(self, step: str) -> Path:
        """Where the output of a step belongs."""
        return self._artifacts / f"{step}.md"

    def bring(self, step: str, state: str) -> None:
        """Makes the approval `step` one in `state`."""
        self.tokens[step] = "x"
        if state == "none":
            return
        if state == "checkpoint":
            assert self._worker.request({"action": "save", **key(step), "state_data": {"n": 1}})["success"]
            return
        time = {"expires_in_sec": 1} if state == "expired" else {}
        self.tokens[step] = ask(self._worker, step, output=f"{step}.md", **time)["approval_token"]
        if state in ("completed", "missing", "changed"):
            assert approve(self._worker, step, self.tokens[step])["success"]
        self._artifacts.mkdir(parents=True, exist_ok=True)
        if state == "published":
            self.file(step).write_text(REPORT, encoding="utf-8")
        elif state in ("taken", "changed"):
            self.file(step).write_text("something else", encoding="utf-8")
        elif state == "missing":
            self.file(step).unlink()
        elif state == "rejected":
            assert self._worker.request(decide("reject", step, self.tokens[step]))["success"]
        elif state == "corrupt":
            self._sql.execute(
                "UPDATE workflow_checkpoints SET state_data = replace(state_data::text, 'Two', 'Three')::json"
                " WHERE step_id = %s",
                (step,),
            )

    def state(self, step: str) -> str:
        """The state in which the approval is."""
        found = data_of(self._worker.request({"action": "get", **key(step)}))
        if not found["found"]:
            return "none"
        record = found["state_data"]
        if "status" not in record:
            return "checkpoint"
        if record["report"] != REPORT:
            return "corrupt"
        if record["status"] == "rejected":
            return "rejected"
        content = self.file(step).read_text(encoding="utf-8") if self.file(step).exists() else None
        if record["status"] == "completed":
            return {REPORT: "completed", None: "missing"}.get(content, "changed")
        if content is not None:
            return "published" if content == REPORT else "taken"
        expired = [item["expired"] for item in self._pending() if item["step_id"] == step]
        return "expired" if expired == [True] else "awaiting"

    def answer(self, step: str, action: str) -> str:
        """What the action is answered, in the word of the table."""
        response = self._worker.request(ACTIONS[action](step, self.tokens[step]))
        if not response["success"]:
            return str(response["code"])
        data = response["data"]
        match action:
            case "pending":
                listed = [item["corrupt"] for item in data["pending"] if item["step_id"] == step]
                return {(): "not listed", (False,): "listed", (True,): "listed as corrupt"}[tuple(listed)]
            case "save":
                return "saved"
            case "delete":
                return "deleted" if data["deleted_count"] else "nothing"
        for flag in ("needs_report", "created", "already_completed", "already_rejected", "expired"):
            if data[flag]:
                return flag
        if action.startswith("ask") and data["verified"]:
            return "verified"
        if data["status"] == "awaiting-approval":
            return "waits" if data["approval_token"] == self.tokens[step] else "renewed"
        return str(data["status"])

    def _pending(self) -> list[dict[str, Any]]:
        page: list[dict[str, Any]] = data_of(self._worker.request({"action": "pending"}))["pending"]
        return page


def _table() -> dict[tuple[str, str], str]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith("| state | ask |"))
    names = [cell.strip() for cell in lines[head].strip("|").split("|")]
    cells = {}
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        state, *row = (cell.strip() for cell in line.strip("|").split("|"))
        cells.update({(state, action): cell for action, cell in zip(names[1:], row, strict=True)})
    return cells


def test_every_pair_of_state_and_action_does_what_the_table_says(
    worker: Worker, sql: Connection, artifacts: Path
) -> None:
    """Each cell: the answer, and the state after it; where the table names none, the state stays."""
    table = _table()
    assert set(table) == {(state, action) for state in STATES for action in ACTIONS}
    walk = Walk(worker, sql, artifacts)
    wrong = {}
    pairs = sorted(table, key=lambda pair: (STATES.index(pair[0]), pair[1]))
    for number, (state, _) in enumerate(pairs):
        walk.bring(f"s{number}", state)
    for number, (state, _) in enumerate(pairs):
        until(lambda step=f"s{number}", state=state: walk.state(step) == state, f"s{number} is {state}")  # type: ignore[misc]
    for number, (state, action) in enumerate(pairs):
        before = _look(walk, f"s{number}")
        said = walk.answer(f"s{number}", action)
        after = walk.state(f"s{number}")
        seen = said if after == state else f"{said} → {after}"
        if seen != table[state, action]:
            wrong[state, action] = seen
        if before is not None and "delete" not in action and walk.file(f"s{number}").exists():
            assert _look(walk, f"s{number}") == before, (state, action)
    assert wrong == {}


def _look(walk: Walk, step: str) -> tuple[int, int] | None:
    """Inode and time of change of an output file."""
    try:
        status = os.stat(walk.file(step))
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def test_the_picture_shows_the_states_and_actions_there_are() -> None:
    """The names in the diagram are those of the table, and its actions those of the product."""
    page = PAGE.read_text(encoding="utf-8")
    diagram = page.partition("```mermaid\n")[2].partition("```")[0]
    named = {word for line in diagram.splitlines() if "-->" in line for word in line.partition(":")[0].split(" --> ")}
    assert {name.strip() for name in named} - {"[*]"} == {"awaiting", "expired", "published", "completed", "rejected"}
    assert json.dumps(diagram).count("request_approval") == 2
