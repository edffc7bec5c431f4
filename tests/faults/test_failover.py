"""A standby takes over through a URL of several hosts; the worker is not restarted and nothing acknowledged is lost."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults.actions import EVERY_ACTION, KEY, NO_CACHE, READS, ask, fails, save, serves, works
from tests.faults.conftest import BUSY_MACHINE_SECONDS, LONGER, NOTES, SHORT, longest_answer
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.own_server import OwnServers
    from tests.support.worker import Worker

HOSTS = 2
SAVES_BEFORE = 50


class Pair:
    """A primary and its standby, which confirms every commit; and how workers are started on both."""

    def __init__(self, servers: OwnServers) -> None:
        self.primary = servers.new()
        self.standby = servers.new(standby_of=self.primary)
        for server in (self.primary, self.standby):
            server.start()
        until(lambda: self._replicates("streaming"), "the standby receives")
        self.primary.alter(synchronous_standby_names="*", synchronous_commit="remote_apply")
        until(lambda: self._replicates("sync"), "commits wait for the standby")
        self.parameters = (
            f"host=127.0.0.1,127.0.0.1 port={self.primary.port},{self.standby.port} user=postgres dbname=postgres"
        )

    def _replicates(self, state: str) -> bool:
        return self.primary.query(f"SELECT 1 FROM pg_stat_replication WHERE '{state}' IN (state, sync_state)") != []


@pytest.fixture(scope="module")
def lasting_pair(own_servers: OwnServers) -> Pair:
    """A primary and a standby that stay so."""
    return Pair(own_servers)


@pytest.fixture
def pair(own_servers: OwnServers) -> Iterator[Pair]:
    """A primary and a standby of the test's own."""
    pair = Pair(own_servers)
    yield pair
    for server in (pair.primary, pair.standby):
        server.end()


class Saving(threading.Thread):
    """Saves one checkpoint after another until it is told to stop, and keeps what was acknowledged."""

    def __init__(self, worker: Worker) -> None:
        super().__init__(daemon=True)
        self._worker = worker
        self._over = threading.Event()
        self.acknowledged: list[tuple[float, int]] = []
        self.failed: list[dict[str, Any]] = []
        self.slowest = 0.0

    def run(self) -> None:
        """One request at a time, each with a state and a step of its own."""
        n = 0
        while not self._over.is_set():
            n += 1
            begin = time.monotonic()
            answer = self._worker.request(
                {"action": "save", "workflow_id": "ledger", "step_id": f"s{n}", "state_data": {"n": n}}
            )
            end = time.monotonic()
            self.slowest = max(self.slowest, end - begin)
            if answer["success"]:
                self.acknowledged.append((end, n))
            else:
                self.failed.append(answer)

    def stop(self) -> None:
        """Waits for the answer under way."""
        self._over.set()
        self.join()


@pytest.mark.parametrize("how", ["kill", "freeze"])
def test_what_was_acknowledged_survives_the_fail_over_and_the_worker_goes_on(
    how: str, pair: Pair, start_offline_worker: StartWorker, own_schema: str, run_folder: Path
) -> None:
    """The primary dies or freezes under load and its standby is promoted: the same process saves again, nothing is lost."""
    env = {"DATABASE_URL": pair.parameters, "CHECKPOINT_SCHEMA": own_schema, **SHORT}
    worker = start_offline_worker(env)
    assert ask(worker, "healthcheck")["data"]["pg"]["writable"]
    saving = Saving(worker)
    saving.start()
    until(lambda: len(saving.acknowledged) >= SAVES_BEFORE, "saves are acknowledged")
    getattr(pair.primary, how)()
    until(lambda: saving.failed, "a save fails")
    begin = time.monotonic()
    pair.standby.promote()
    promoted = time.monotonic()
    until(lambda: saving.acknowledged[-1][0] > promoted, "a save is acknowledged by the new primary")
    saving.stop()
    first = next(moment for moment, _ in saving.acknowledged if moment > promoted)
    with (run_folder / NOTES).open("a", encoding="utf-8") as notes:  # told at the end of the run
        notes.write(
            f"fail-over ({how}): promotion took {promoted - begin:.2f} s, the first save was acknowledged "
            f"{first - promoted:.2f} s later, {len(saving.failed)} failed meanwhile\n"
        )
    assert saving.slowest <= longest_answer(HOSTS) + BUSY_MACHINE_SECONDS
    assert {answer["code"] for answer in saving.failed} <= {"PG_WRITE_ERROR", "PG_WRITE_UNKNOWN"}
    rows = f"SELECT step_id, state_data ->> 'n' FROM {own_schema}.workflow_checkpoints WHERE workflow_id = 'ledger'"
    stands = dict(pair.standby.query(rows))
    lost = [n for _, n in saving.acknowledged if stands.get(f"s{n}") != str(n)]
    assert lost == [], f"{len(lost)} of {len(saving.acknowledged)} acknowledged saves are lost"
    serves(worker)
    for action in EVERY_ACTION:
        works(worker, action)


def test_reads_and_writes_go_to_the_host_that_takes_writes(
    lasting_pair: Pair,
    start_offline_worker: StartWorker,
    own_schema: str,
    tmp_path: Path,
    bounded: Callable[..., AbstractContextManager[None]],
) -> None:
    """The standby stands first: in a URL, in key = value pairs, in PGHOST, in a service file; each is passed over."""
    first, second = lasting_pair.standby.port, lasting_pair.primary.port
    service = tmp_path / "services"
    service.write_text(
        f"[both]\nhost=127.0.0.1,127.0.0.1\nport={first},{second}\nuser=postgres\ndbname=postgres\n", encoding="utf-8"
    )
    spellings: dict[str, dict[str, str]] = {
        "url": {"DATABASE_URL": f"postgresql://postgres@127.0.0.1:{first},127.0.0.1:{second}/postgres"},
        "pairs": {"DATABASE_URL": f"host='127.0.0.1,127.0.0.1' port={first},{second} user=postgres dbname = postgres"},
        "hostaddr": {
            "DATABASE_URL": f"hostaddr=127.0.0.1,127.0.0.1 port={first},{second} user=postgres dbname=postgres"
        },
        "environment": {
            "DATABASE_URL": "postgresql://postgres@/postgres",
            "PGHOST": "127.0.0.1,127.0.0.1",
            "PGPORT": f"{first},{second}",
        },
        "service": {"DATABASE_URL": "service=both", "PGSERVICEFILE": str(service)},
    }
    for spelling, env in spellings.items():
        worker = start_offline_worker({"CHECKPOINT_SCHEMA": own_schema, **LONGER, **NO_CACHE, **env})
        with bounded(hosts=HOSTS):
            assert ask(worker, "get")["success"]
        answer = save(worker, 1)
        assert answer["success"], f"{spelling}: {answer}"
        assert worker.request({"action": "delete", **KEY})["success"]
        serves(worker)


def test_a_standby_alone_serves_reads_and_says_that_it_takes_no_writes(
    lasting_pair: Pair, start_offline_worker: StartWorker, own_schema: str
) -> None:
    """One host, a standby: reads work, writes are PG_WRITE_ERROR, the health is down."""
    env = {"CHECKPOINT_SCHEMA": own_schema, **LONGER, **NO_CACHE}
    primary = start_offline_worker({"DATABASE_URL": lasting_pair.primary.url, **env})
    assert save(primary, 1)["success"]
    worker = start_offline_worker({"DATABASE_URL": lasting_pair.standby.url, **env})
    for action in READS:
        works(worker, action)
    assert worker.request({"action": "get", **KEY})["data"]["state_data"] == {"n": 1}
    for action in ("save", "request_approval", "approve", "prune", "delete"):
        fails(worker, action)
    health = ask(worker, "healthcheck")["data"]
    assert (health["status"], health["pg"]["ok"], health["pg"]["writable"]) == ("down", False, False)
