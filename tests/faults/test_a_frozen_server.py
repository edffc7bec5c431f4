"""A server that says nothing more is waited for in bounds, which only the client can keep (contract, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.faults.actions import EVERY_ACTION, NO_CACHE, ask, serves
from tests.faults.conftest import SHORT

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer

# After so many replies on a new connection a save has its own.
LAST_REPLY = 4
# Silence after that many replies; or seconds that each reply takes, all of them shorter than some time-out.
TROUBLES = (*range(LAST_REPLY + 1), 0.8, 1.3, 1.9)
OPEN_OUTCOME = ("save", "delete")


def test_a_frozen_server_is_given_up_in_bounded_time_and_served_from_again_when_it_goes_on(
    here: Here, server: OwnServer, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """SIGSTOP to all of it: reads and writes on a kept connection and new connections fail in time; all recover."""
    actions = ("save", "get", "list", "rebuild", "verify", "delete", "healthcheck")
    warm = {action: here(**NO_CACHE, **SHORT) for action in actions}
    cold = {action: here(**SHORT) for action in ("get", "save")}
    for worker in warm.values():
        assert ask(worker, "save")["success"]
    server.freeze()
    try:
        with bounded():
            for action, worker in warm.items():
                worker.send({"action": action, **EVERY_ACTION[action].request})
            for action, worker in cold.items():
                worker.send({"action": action, **EVERY_ACTION[action].request})
            answers = {action: worker.read_line() for action, worker in warm.items()}
            for action, worker in cold.items():
                answer = worker.read_line()  # nothing was sent yet
                assert answer["code"] == EVERY_ACTION[action].without, f"{action}: {answer}"
        for action, answer in answers.items():
            expected = "PG_WRITE_UNKNOWN" if action in OPEN_OUTCOME else EVERY_ACTION[action].without
            assert answer["code"] == expected, f"{action}: {answer}"
        assert answers["healthcheck"]["data"]["status"] == "down"
    finally:
        server.thaw()
    for worker in (*warm.values(), *cold.values()):
        serves(worker)


def test_reads_that_the_cache_does_not_have_wait_for_a_frozen_server_together(
    here: Here, server: OwnServer, bounded: Callable[..., AbstractContextManager[None]]
) -> None:
    """Many of them in one burst take the time of one, not of all."""
    worker = here(**SHORT)
    assert ask(worker, "save")["success"]
    server.freeze()
    try:
        with bounded():
            for step in range(20):
                worker.send({"action": "cached_get", "workflow_id": "wf", "step_id": f"missing {step}"})
            answers = worker.read_lines(20)
        assert {answer["code"] for answer in answers} == {"PG_READ_ERROR"}
    finally:
        server.thaw()
    serves(worker)


def test_a_network_that_is_silent_or_slow_at_any_moment_is_given_up_in_bounded_time(
    here: Here,
    server: OwnServer,
    through: Callable[[str], Network],
    bounded: Callable[..., AbstractContextManager[None]],
) -> None:
    """Whichever reply does not come, or is late, the answer is in time and true; when it is mended the process serves."""
    ask(here(), "save")
    tried = [(action, _fault(through(server.url), trouble)) for trouble in TROUBLES for action in ("save", "get")]
    workers = [here(DATABASE_URL=network.url, **SHORT) for _, network in tried]
    for worker in workers:
        assert ask(worker, "cache")["success"]  # started, and not connected yet
    with bounded():
        for (action, _), worker in zip(tried, workers, strict=True):
            worker.send({"action": action, **EVERY_ACTION[action].request})
        answers = [worker.read_line(patience=20) for worker in workers]
    for (action, _), answer in zip(tried, answers, strict=True):
        truths = {None, EVERY_ACTION[action].without, "PG_WRITE_UNKNOWN" if action == "save" else None}
        assert answer["code"] in truths, f"{action}: {answer}"
    assert not answers[0]["success"]
    assert answers[2 * LAST_REPLY]["success"], "the last reply of a first save is a later one now"
    for _, network in tried:
        network.mend()
    for worker in workers:
        serves(worker)


def _fault(network: Network, trouble: float) -> Network:
    if isinstance(trouble, int):
        network.silent_after(trouble)
    else:
        network.delay = trouble
    return network
