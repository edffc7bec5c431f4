"""A save whose answer was lost, and whose row others have saved since, is unknown and stays away (contract, section 3)."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.actions import WORKFLOW, serves
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

STEPS = ("a", "b")
LATE_SECONDS = 0.3  # each reply to the new connection: several come before the outcome is looked up


def _save(step: str, by: str) -> dict[str, Any]:
    return {"action": "save", "workflow_id": WORKFLOW, "step_id": step, "state_data": {"by": by}}


def _rows(server: OwnServer, schema: str) -> dict[str, tuple[str, int]]:
    """Who wrote each step last, and its revision."""
    rows = f"SELECT step_id, state_data ->> 'by', revision FROM {schema}.workflow_checkpoints"
    found = server.query(f"{rows} WHERE workflow_id = '{WORKFLOW}'")
    return {step: (by, revision) for step, by, revision in found}


@pytest.fixture
def network(server: OwnServer, through: Callable[[str], Network]) -> Network:
    """Between the worker whose answers are lost and the server."""
    return through(server.url)


@pytest.fixture
def other(here: Here) -> Worker:
    """A worker without troubles, connected."""
    other = here()
    serves(other)
    return other


def _behind(network: Network, here: Here) -> Worker:
    """A worker behind the network, connected. Its next save is sent with one message and answered with one."""
    worker = here(DATABASE_URL=network.url)
    serves(worker)
    return worker


@contextmanager
def _answer_lost(network: Network) -> Iterator[None]:
    """What is sent inside is carried out, its answer is lost, and it is looked up only after the block."""
    network.cut_after(0)
    network.delay = LATE_SECONDS
    yield
    network.delay = 0.0


@pytest.mark.parametrize("expected", [0, 1])
def test_a_compare_and_set_whose_row_was_deleted_and_made_anew(
    expected: int, here: Here, other: Worker, network: Network, server: OwnServer, own_schema: str
) -> None:
    """The revisions of another life of the key tell nothing: PG_WRITE_UNKNOWN, and the other's state stands."""
    for _ in range(expected):
        other.ask(_save("a", "first"))
    worker = _behind(network, here)
    with _answer_lost(network):
        worker.send({**_save("a", "lost"), "expected_revision": expected})
        until(lambda: _rows(server, own_schema) == {"a": ("lost", expected + 1)}, "the save is written")
        other.ask({"action": "delete", "workflow_id": WORKFLOW, "step_id": "a"})
        assert other.ask(_save("a", "other"))["revision"] == 1
    answer = worker.read_line()
    network.mend()
    assert _rows(server, own_schema) == {"a": ("other", 1)}
    assert answer["code"] == "PG_WRITE_UNKNOWN"


@pytest.mark.parametrize("stood", [0, 1], ids=["new", "stood before"])
def test_one_save(stood: int, here: Here, other: Worker, network: Network, server: OwnServer, own_schema: str) -> None:
    """Written, its answer lost, saved by another before the look-up: PG_WRITE_UNKNOWN, and the other's state stands."""
    for _ in range(stood):
        other.ask(_save("a", "first"))
    worker = _behind(network, here)
    with _answer_lost(network):
        worker.send(_save("a", "lost"))
        until(lambda: _rows(server, own_schema) == {"a": ("lost", stood + 1)}, "the save is written")
        assert other.ask(_save("a", "other"))["revision"] == stood + 2
    answer = worker.read_line()
    network.mend()
    assert _rows(server, own_schema) == {"a": ("other", stood + 2)}
    assert answer["code"] == "PG_WRITE_UNKNOWN"
    got = worker.ask({"action": "cached_get", "workflow_id": WORKFLOW, "step_id": "a"})
    assert got["state_data"] == {"by": "other"}
    assert worker.ask(_save("a", "again"))["revision"] == stood + 3


@pytest.mark.parametrize("overtaken", [STEPS, STEPS[:1]], ids=["all of them", "one of them"])
def test_saves_sent_together(
    overtaken: Sequence[str], here: Here, other: Worker, network: Network, server: OwnServer, own_schema: str
) -> None:
    """The same for a batch, whether others have saved all of its keys since or one: nothing is written twice."""
    worker = _behind(network, here)
    with _answer_lost(network):
        worker.send_raw("".join(json.dumps(_save(step, "lost")) + "\n" for step in STEPS).encode())
        written = dict.fromkeys(STEPS, ("lost", 1))
        until(lambda: _rows(server, own_schema) == written, "the saves are written")
        for step in overtaken:
            other.ask(_save(step, "other"))
    answers = worker.read_lines(len(STEPS))
    network.mend()
    left = {step: ("other", 2) if step in overtaken else ("lost", 1) for step in STEPS}
    assert _rows(server, own_schema) == left
    assert [answer["code"] for answer in answers] == ["PG_WRITE_UNKNOWN"] * len(STEPS)
    for step in STEPS:
        got = worker.ask({"action": "cached_get", "workflow_id": WORKFLOW, "step_id": step})
        assert got["state_data"] == {"by": left[step][0]}
