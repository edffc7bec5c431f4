"""A connection that breaks anywhere in a save never leads to a false answer (contract, section 3, save)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.actions import KEY, serves
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

# A break before each of so many replies: of the save itself, of the new connection, of the look-up, of the repetition.
MOMENTS = 9
TOGETHER = 5


class Writer:
    """Saves 1, 2, 3 ... under one key and holds every answer to what stands in PostgreSQL."""

    def __init__(self, worker: Worker, server: OwnServer, schema: str, *, compare: bool) -> None:
        self._worker = worker
        self._stands = f"SELECT revision, state_data ->> 'n' FROM {_rows(schema)}"
        self._server = server
        self._compare = compare
        self._n = 0
        self.revision = 0

    def save(self, moment: object) -> dict[str, Any]:
        """The answer: success with the next revision, or unknown; what stands is then this state or the one before."""
        self._n += 1
        expected = {"expected_revision": self.revision} if self._compare else {}
        answer = self._worker.request({"action": "save", **KEY, "state_data": {"n": self._n}, **expected})
        stands = self._server.query(self._stands)
        if answer["success"]:
            assert answer["data"]["revision"] == self.revision + 1, f"break before {moment}: {answer}"
            assert stands == [(self.revision + 1, str(self._n))], f"break before {moment}"
        else:
            assert answer["code"] == "PG_WRITE_UNKNOWN", f"break before {moment}: {answer}"
            assert stands in ([(self.revision + 1, str(self._n))], [(self.revision, str(self._n - 1))], [])
        if stands:
            self.revision = int(str(stands[0][0]))
            self._n = int(str(stands[0][1]))
        return answer


def _rows(schema: str) -> str:
    return f"{schema}.workflow_checkpoints WHERE workflow_id = 'wf'"


@pytest.mark.parametrize("compare", [False, True], ids=["save", "compare and set"])
def test_a_reply_lost_at_any_moment_is_a_success_or_unknown(
    compare: bool, here: Here, server: OwnServer, own_schema: str, through: Callable[[str], Network]
) -> None:
    """Whichever reply is lost with its connection: written once and said so, or unknown; never a false conflict."""
    network = through(server.url)
    worker = here(DATABASE_URL=network.url)
    serves(worker)
    writer = Writer(worker, server, own_schema, compare=compare)
    answers = []
    for moment in range(MOMENTS):
        network.cut_after(0, moment)
        answers.append(writer.save((0, moment)))
        network.mend()
        assert writer.save("nothing")["success"]
        network.cut_after(moment)
        writer.save(moment)
        network.mend()
    assert answers[-1]["success"]
    serves(worker)


@pytest.mark.parametrize("expected", [{}, {"expected_revision": 1}], ids=["save", "compare and set"])
def test_a_save_whose_answer_alone_is_lost_is_recognised(
    expected: dict[str, int], here: Here, server: OwnServer, through: Callable[[str], Network]
) -> None:
    """The server had the save, the answer was lost: success with the revision that it got, written once."""
    network = through(server.url)
    worker = here(DATABASE_URL=network.url)
    first = worker.request({"action": "save", **KEY, "state_data": {"n": 1}})["data"]
    network.cut_after(0)
    second = worker.request({"action": "save", **KEY, "state_data": {"n": 2}, **expected})["data"]
    assert (second["revision"], second["id"], second["created_at"]) == (2, first["id"], first["created_at"])
    assert second["updated_at"] > first["updated_at"]
    got = worker.request({"action": "get", **KEY})["data"]
    assert (got["state_data"], got["revision"], got["updated_at"]) == ({"n": 2}, 2, second["updated_at"])
    hit = worker.request({"action": "cached_get", **KEY})["data"]
    assert hit["state_data"] == {"n": 2}


def test_a_first_save_whose_answer_is_lost_is_recognised(
    here: Here, server: OwnServer, through: Callable[[str], Network]
) -> None:
    """With expected_revision 0 too: it exists now, and this is the save that made it."""
    network = through(server.url)
    worker = here(DATABASE_URL=network.url)
    serves(worker)
    network.cut_after(0)
    answer = worker.request({"action": "save", **KEY, "state_data": {}, "expected_revision": 0})
    assert answer["success"], answer
    assert answer["data"]["revision"] == 1


def test_an_outcome_that_another_save_covered_is_no_conflict(
    here: Here, server: OwnServer, own_schema: str, through: Callable[[str], Network]
) -> None:
    """The answer was lost and another save followed before the look-up: it may have been written, so it is unknown."""
    network = through(server.url)
    worker, other = here(DATABASE_URL=network.url), here()
    assert other.request({"action": "save", **KEY, "state_data": {"n": 1}})["success"]
    assert worker.request({"action": "get", **KEY})["success"]
    network.cut_after(0)
    network.delay = 0.2  # the new connection takes its time
    worker.send({"action": "save", **KEY, "state_data": {"n": 2}, "expected_revision": 1})
    until(lambda: server.query(f"SELECT revision FROM {_rows(own_schema)}") == [(2,)], "the save is written")
    covering = other.request({"action": "save", **KEY, "state_data": {"n": 3}, "expected_revision": 2})
    network.delay = 0.0
    assert covering["data"]["revision"] == 3
    assert worker.read_line()["code"] == "PG_WRITE_UNKNOWN"
    network.mend()
    stale = worker.request({"action": "save", **KEY, "state_data": {"n": 4}, "expected_revision": 1})
    assert stale["code"] == "REVISION_CONFLICT"
    assert "3" in stale["error"]
    assert worker.request({"action": "get", **KEY})["data"]["state_data"] == {"n": 3}


def test_saves_that_waited_together_are_each_told_the_truth(
    here: Here, server: OwnServer, own_schema: str, through: Callable[[str], Network]
) -> None:
    """Many saves in one write, the reply lost at any moment: each is a success, written once, or unknown."""
    network = through(server.url)
    worker = here(DATABASE_URL=network.url)
    serves(worker)
    stands = {f"s{step}": 0 for step in range(TOGETHER)}
    for moment in range(MOMENTS):
        network.cut_after(moment)
        requests = ({"workflow_id": "wf", "step_id": step, "state_data": {"moment": moment}} for step in stands)
        worker.send_raw("".join(json.dumps({"action": "save", **fields}) + "\n" for fields in requests).encode())
        for step, answer in zip(stands, worker.read_lines(TOGETHER), strict=True):
            row = f"SELECT revision FROM {_rows(own_schema)} AND step_id = '{step}'"
            revision = server.query(row)[0][0] if server.query(row) else 0
            if answer["success"]:
                assert answer["data"]["revision"] == revision == stands[step] + 1, f"{step} at {moment}: {answer}"
            else:
                assert answer["code"] == "PG_WRITE_UNKNOWN", f"{step} at {moment}: {answer}"
                assert revision in {stands[step], stands[step] + 1}, f"{step} at {moment}"
            stands[step] = revision
        network.mend()
    serves(worker)


def test_a_key_of_another_tenant_leaves_no_doubt_about_its_neighbours(
    here: Here, own_schema: str, server: OwnServer, through: Callable[[str], Network]
) -> None:
    """The reply to a burst is lost, and one of its keys is another tenant's: that one is refused, all others succeed."""
    network = through(server.url)
    worker = here(DATABASE_URL=network.url)
    serves(worker)
    for moment in range(3):
        taken = {"workflow_id": f"wf {moment}", "step_id": f"s{TOGETHER // 2}", "state_data": {}}
        assert worker.request({"action": "save", **taken, "tenant_id": "other"})["success"]
        network.cut_after(0)
        requests = ({**taken, "step_id": f"s{step}", "state_data": {"n": step}} for step in range(TOGETHER))
        worker.send_raw("".join(json.dumps({"action": "save", **fields}) + "\n" for fields in requests).encode())
        codes = [answer["code"] for answer in worker.read_lines(TOGETHER)]
        network.mend()
        expected: list[str | None] = [None] * TOGETHER
        expected[TOGETHER // 2] = "TENANT_CONFLICT"
        assert codes == expected
    rows = server.query(f"SELECT count(*) FROM {own_schema}.workflow_checkpoints WHERE workflow_id LIKE 'wf _'")
    assert rows[0][0] == 3 * TOGETHER
