"""The sessions that SKILL.md shows are what a runner really answers (contract, sections 2 and 3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.support.descriptions import sessions
from tests.support.golden import delete_cache

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker

DIFFERS_FROM_RUN_TO_RUN = {
    "id",
    "created_at",
    "updated_at",
    "last_updated_at",
    "cached_at",
    "checked_at",
    "elapsed_sec",
    "report_path",
    "approval_token",
    "output",
    "requested_at",
    "decided_at",
}
TOKEN = b"$TOKEN"
CACHE_LOST = "$ rm data/checkpoint_mcp/cache.db*"


def test_the_worked_sessions_of_the_skill_are_real(start_worker: StartWorker, folder: Path) -> None:
    """All sessions in one conversation, line by line: the answers are those printed, what differs from run to run aside.

    $TOKEN in a request is the approval_token that was answered last.
    """
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": "10000"})
    token = ""
    shown = sessions()
    assert len(shown) >= 5
    for heading, lines in shown.items():
        assert any(line.startswith("< ") for line in lines), heading
        for line in lines:
            mark, text = line[:2], line[2:]
            if mark == "> ":
                worker.send_raw(text.encode().replace(TOKEN, token.encode()) + b"\n")
            elif mark == "< ":
                answer = worker.read_line()
                token = (answer["data"] or {}).get("approval_token") or token
                assert _settled(json.loads(text)) == _settled(answer), heading
            else:
                assert line == CACHE_LOST, heading
                delete_cache(folder)
    worker.finish()


def _settled(value: Any) -> Any:
    """`value` with the type in place of what differs from run to run."""
    if isinstance(value, dict):
        return {
            key: type(inner).__name__ if key in DIFFERS_FROM_RUN_TO_RUN else _settled(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_settled(inner) for inner in value]
    return value
