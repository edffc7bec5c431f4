"""The codes that no conversation alone can reach (contract, section 4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker

KEY = {"workflow_id": "wf", "step_id": "s"}
SAVE = {"action": "save", **KEY, "state_data": {"n": 1}}
HEALTH = {"action": "healthcheck"}
A_BUG = """\
import sys

class Bug:
    def find_spec(self, name, path=None, target=None):
        if name == "checkpoint.actions.{action}":
            raise ZeroDivisionError("a bug of this test")

sys.meta_path.insert(0, Bug())
"""


def test_a_save_whose_answer_is_lost_is_unknown_and_tells_so(
    start_worker: StartWorker, database_url: str, sql: Connection
) -> None:
    """The connection breaks before PostgreSQL's answer and none can be made anew: PG_WRITE_UNKNOWN, a get tells."""
    proxy = Proxy(database_url)
    try:
        worker = start_worker({"DATABASE_URL": proxy.url})
        assert worker.ask(SAVE)["revision"] == 1
        proxy.lose_replies()
        assert worker.request({**SAVE, "state_data": {"n": 2}})["code"] == "PG_WRITE_UNKNOWN"
        assert worker.request({"action": "cached_get", **KEY})["code"] == "PG_READ_ERROR"
    finally:
        proxy.close()
    assert start_worker().ask({"action": "get", **KEY})["state_data"] == {"n": 2}
    assert sql.execute("SELECT revision FROM workflow_checkpoints").fetchall() == [(2,)]


def test_a_record_that_is_no_checkpoint_is_not_overwritten(worker: Worker, sql: Connection) -> None:
    """A save onto a record of another kind is KIND_CONFLICT and changes nothing."""
    worker.ask(SAVE)
    sql.execute("UPDATE workflow_checkpoints SET kind = 'approval'")
    assert worker.request({**SAVE, "state_data": {"n": 2}})["code"] == "KIND_CONFLICT"
    assert worker.request({**SAVE, "state_data": {"n": 2}, "expected_revision": 1})["code"] == "KIND_CONFLICT"
    assert worker.ask({"action": "get", **KEY})["state_data"] == {"n": 1}


@pytest.mark.parametrize(
    ("action", "request_line"), [("healthcheck", HEALTH), ("cached_get", {"action": "cached_get", **KEY})]
)
@pytest.mark.parametrize("times", [1, 3])
def test_a_bug_is_an_answer_and_the_next_line_is_served(
    start_offline_worker: StartWorker, tmp_path: Path, action: str, request_line: dict[str, str], times: int
) -> None:
    """INTERNAL_ERROR says nothing of the inside, the traceback goes to stderr, and the worker goes on."""
    (tmp_path / "sitecustomize.py").write_text(A_BUG.format(action=action), encoding="utf-8")
    worker = start_offline_worker({"PYTHONPATH": str(tmp_path)})
    lines = [request_line] * times + [{"action": "cache", **KEY, "state_data": {}}]
    worker.send_raw("".join(json.dumps(line) + "\n" for line in lines).encode())
    *broken, served = worker.finish()
    assert [answer["code"] for answer in broken] == ["INTERNAL_ERROR"] * times
    assert not any("a bug of this test" in answer["error"] for answer in broken)
    assert served["data"]["written"]
    assert "ZeroDivisionError: a bug of this test" in worker.stderr
