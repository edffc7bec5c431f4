"""The faults of a storm: which one comes when follows from the seed alone."""

from __future__ import annotations

import signal
import time
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from tests.chaos import cache_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.chaos.actors import Actor
    from tests.chaos.database import Database
    from tests.chaos.ledger import Ledger

WORKERS_KILLED = "workers killed (SIGKILL)"
BACKENDS_ENDED = "sessions ended (pg_terminate_backend)"
SERVERS_STOPPED = "PostgreSQL stopped (immediate mode) and started again"
SERVERS_KILLED = "PostgreSQL killed (SIGKILL) and started again"
CACHES_DELETED = "cache files deleted"
CACHES_OVERWRITTEN = "cache files overwritten with garbage"
CACHES_LOCKED = "cache files locked by another process"

# Seconds between two faults of a kind, on average.
EVERY = {
    WORKERS_KILLED: 1.2,
    BACKENDS_ENDED: 1.1,
    SERVERS_STOPPED: 18.0,
    SERVERS_KILLED: 22.0,
    CACHES_DELETED: 4.0,
    CACHES_OVERWRITTEN: 4.0,
    CACHES_LOCKED: 5.0,
}
START_AGAIN = "PostgreSQL started again"


class Fault(NamedTuple):
    """One fault: seconds since the beginning, its kind, and a number for what chance decides in it."""

    at: float
    kind: str
    seed: int


def plan(seed: int, seconds: float) -> list[Fault]:
    """The faults of a storm of that length, in order; each kind comes at least once."""
    faults = []
    for kind, every in EVERY.items():
        random = Random(f"{seed} {kind}")
        at = random.uniform(0.15, 0.75) * min(every, seconds)
        while at < seconds:
            faults.append(Fault(at, kind, random.getrandbits(32)))
            if kind in (SERVERS_STOPPED, SERVERS_KILLED):
                faults.append(Fault(at + random.uniform(0.05, 1.2), START_AGAIN, 0))
            at += every * random.uniform(0.5, 1.5)
    return sorted(faults)


class Faults:
    """Brings the faults of a plan about, each at its time. `counts` and the ledger's journal tell what really happened."""

    def __init__(self, ledger: Ledger, database: Database, actors: Sequence[Actor], folders: Sequence[Path]) -> None:
        self._ledger = ledger
        self._database = database
        self._actors = actors
        self._folders = folders
        self._lockers = cache_faults.Lockers()
        self._harm: dict[str, Callable[[Path, Random], str | None]] = {
            CACHES_DELETED: cache_faults.delete,
            CACHES_OVERWRITTEN: cache_faults.overwrite,
            CACHES_LOCKED: self._lockers.lock,
        }
        self.counts: Counter[str] = Counter(dict.fromkeys(EVERY, 0))

    def run(self, faults: Sequence[Fault], seconds: float) -> None:
        """Returns when the time is over and no lock is held any more."""
        began = time.monotonic()
        for fault in [*faults, Fault(seconds, "", 0)]:
            time.sleep(max(0.0, began + fault.at - time.monotonic()))
            happened = self._bring(fault)
            if happened:
                self._ledger.note(f"{fault.kind}: {happened}")
        self._lockers.wait()

    def _bring(self, fault: Fault) -> str | None:
        random = Random(fault.seed)
        match fault.kind:
            case "":
                return None
            case kind if kind == START_AGAIN:
                self._database.start()
                return "now"
            case kind if kind == WORKERS_KILLED:
                actor = random.choice(self._actors)
                happened = actor.name if actor.kill() else None
            case kind if kind == BACKENDS_ENDED:
                ended = self._database.end_backends(random.choice([0.1, 0.1, 0.5, 1.0]))
                self.counts[kind] += max(0, ended - 1)
                happened = f"{ended} of them" if ended else None
            case kind if kind in (SERVERS_STOPPED, SERVERS_KILLED):
                how = signal.SIGQUIT if kind == SERVERS_STOPPED else signal.SIGKILL
                self._database.crash(how)
                happened = how.name
            case kind:
                folder = random.choice(self._folders)
                done = self._harm[kind](folder, random)
                happened = f"{folder.name}: {done}" if done else None
        self.counts[fault.kind] += happened is not None
        return happened
