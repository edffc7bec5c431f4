"""The fence around statements that were given up stands in nobody else's way (contract, section 3, save)."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tests.support
from tests.faults.actions import KEY, STEP, WORKFLOW, save, serves
from tests.faults.conftest import LONGER
from tests.support.asking import done

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.conftest import StartWorker
    from tests.faults.conftest import Here
    from tests.support.network import Network
    from tests.support.own_server import OwnServer
    from tests.support.worker import Worker

WRITERS = 5
SAVES = 12
A_DAY_NS = 86_400 * 10**9
SLEPT_CLOCK = Path(tests.support.__file__).with_name("slept_clock.py")


@pytest.mark.parametrize("delay", [0.0, 0.02], ids=["fast network", "slow network"])
def test_writers_of_one_key_never_fail_one_another(
    delay: float, here: Here, server: OwnServer, through: Callable[[str], Network]
) -> None:
    """Many processes save one key without expecting a revision: every save succeeds and counts once."""
    networks = [through(server.url) for _ in range(WRITERS)]
    workers = [here(DATABASE_URL=network.url) for network in networks]
    for worker in workers:
        serves(worker)
    for network in networks:
        network.delay = delay
    failures: list[Any] = []
    revisions: list[int] = []

    def write(worker: Worker) -> None:
        for n in range(SAVES):
            answer = save(worker, n)
            if answer["success"]:
                revisions.append(answer["data"]["revision"])
            else:
                failures.append(answer)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(revisions) == list(range(1, WRITERS * SAVES + 1))


def test_what_another_process_just_saved_is_deleted_and_saved_over(
    here: Here, server: OwnServer, through: Callable[[str], Network]
) -> None:
    """A process whose network is slow knows of PostgreSQL's clock what it showed a while ago: it acts all the same."""
    network = through(server.url)
    network.delay = 0.05
    slow, fast = here(DATABASE_URL=network.url, CHECKPOINT_STATEMENT_TIMEOUT="5"), here()
    done(slow, "get", **KEY)
    for what in ({"step_id": STEP}, {"all_steps": True}):
        done(fast, "save", **KEY, state_data={"n": 1})
        assert done(slow, "delete", workflow_id=WORKFLOW, **what)["deleted_count"] == 1, what
    done(fast, "save", **KEY, state_data={"n": 1})
    assert done(slow, "save", **KEY, state_data={"n": 2})["revision"] == 2
    done(fast, "save", **KEY, state_data={"n": 3})
    assert done(slow, "save", **KEY, state_data={"n": 4}, expected_revision=3)["revision"] == 4


def test_a_machine_that_slept_goes_on(
    start_offline_worker: StartWorker, server: OwnServer, own_schema: str, tmp_path: Path
) -> None:
    """After a suspension, in which PostgreSQL's clock went on, every kind of write works, of new keys too."""
    slept = tmp_path / "slept"
    slept.write_text("0", encoding="ascii")
    env = {"DATABASE_URL": server.url, "CHECKPOINT_SCHEMA": own_schema, "SLEPT_CLOCK": str(slept), **LONGER}
    worker = start_offline_worker(env, argv=(sys.executable, str(SLEPT_CLOCK)))
    done(worker, "save", **KEY, state_data={"n": 1})
    slept.write_text(str(A_DAY_NS), encoding="ascii")
    new = {"workflow_id": WORKFLOW, "state_data": {}}
    assert done(worker, "save", **new, step_id="new")["revision"] == 1
    writes: tuple[tuple[str, dict[str, Any]], ...] = (
        ("save", {**new, "step_id": "newer", "expected_revision": 0}),
        ("save", {**KEY, "state_data": {"n": 2}}),
        ("save", {**KEY, "state_data": {"n": 3}, "expected_revision": 2}),
        ("request_approval", {**KEY, "step_id": "asked", "input": {}, "report": "r"}),
        ("delete", {"workflow_id": WORKFLOW, "step_id": "new"}),
        ("delete", {"workflow_id": WORKFLOW, "all_steps": True}),
    )
    for days, (action, fields) in enumerate(writes, start=2):
        slept.write_text(str(days * A_DAY_NS), encoding="ascii")
        data = done(worker, action, **fields)
        assert data.get("deleted_count", 1) >= 1, (action, fields)
    slept.write_text(str(10 * A_DAY_NS), encoding="ascii")
    for step in ("a", "b", "c"):
        worker.send({"action": "save", **new, "step_id": step})
    for answer in worker.read_lines(3):
        assert answer["success"], answer
