"""One storm from its beginning to its end, and the table of what came of it."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from tests.chaos import ending
from tests.chaos import ledger as book
from tests.chaos.actors import Actor, Keys
from tests.chaos.database import Database
from tests.chaos.faults import Faults, plan
from tests.chaos.ledger import Key, Ledger
from tests.support.environment import worker_environment
from tests.support.process import until
from tests.support.reached import Reached
from tests.support.responses import Responses
from tests.support.table import Table

if TYPE_CHECKING:
    from pathlib import Path

# Name, data folder, and how many keys it owns: writers own some, readers none. Two writers and a reader share a cache.
CAST = (
    ("writer-1", "shared", 5),
    ("writer-2", "shared", 5),
    ("writer-3", "own-1", 5),
    ("reader-1", "shared", 0),
    ("reader-2", "own-1", 0),
    ("reader-3", "own-2", 0),
)
CONTENDED = 3
SETTINGS = {"CHECKPOINT_CACHE_TTL": "0.5", "CHECKPOINT_CONNECT_TIMEOUT": "3", "CHECKPOINT_STATEMENT_TIMEOUT": "5"}


class Storm:
    """`folder` has to be one that the account of a PostgreSQL server can pass."""

    def __init__(self, folder: Path, seed: int, seconds: float) -> None:
        self._folder = folder
        self._seed = seed
        self._seconds = seconds
        self._ledger = Ledger()
        self._answers: Counter[str] = Counter()
        self._compared = 0
        self.journal: list[str] = []

    def run(self) -> Table:
        """The table; where a promise was broken, `journal` then tells of each wrong and of the faults around it."""
        database = Database(self._folder / "pg")
        try:
            return self._run(database)
        finally:
            database.close()

    def _run(self, database: Database) -> Table:
        environment = worker_environment({**SETTINGS, "DATABASE_URL": database.url})
        responses = Responses(Reached(self._folder))
        contended = [Key("contended", f"step-{number}", owned=False) for number in range(CONTENDED)]
        owned = {name: [Key(name, f"step-{number}", owned=True) for number in range(count)] for name, _, count in CAST}
        every = [*contended, *(key for keys in owned.values() for key in keys)]
        actors = [
            Actor(
                name,
                environment,
                self._folder / folder,
                responses,
                self._ledger,
                Keys(every, owned[name], contended),
                Random(f"{self._seed} {name}"),
                self._answers,
            )
            for name, folder, _ in CAST
        ]
        folders = [self._folder / name for name in dict.fromkeys(folder for _, folder, _ in CAST)]
        faults = Faults(self._ledger, database, actors, folders)
        for actor in actors:
            actor.start()
        try:
            until(lambda: self._ledger.acknowledged_saves, "the first save is acknowledged", patience=60.0)
            faults.run(plan(self._seed, self._seconds), self._seconds)
        finally:
            for actor in actors:
                actor.stop()
            for actor in actors:
                actor.join()
        database.settle()
        rows = database.rows()
        ending.hold_to_the_book(self._ledger, every, rows)
        for folder in folders:
            self._compared += ending.hold_the_cache(self._ledger, environment, folder, responses, rows)
        table = self._table(database, actors, faults)
        if not table.right:
            self.journal = self._ledger.journal
        return table

    def _table(self, database: Database, actors: list[Actor], faults: Faults) -> Table:
        ledger = self._ledger
        writers = sum(1 for _, _, count in CAST if count)
        table = Table(
            f"chaos: seed {self._seed}, {self._seconds:g} s, {writers} writers, {len(CAST) - writers} readers, "
            f"PostgreSQL {database.version()}"
        )
        table.tell("requests answered", sum(actor.requests for actor in actors))
        for code, count in sorted(self._answers.items(), key=lambda item: -item[1]):
            table.tell(f"  answered with {code}", count)
        table.hold("saves acknowledged", ledger.acknowledged_saves, "more than 0", right=ledger.acknowledged_saves > 0)
        table.tell("saves and deletes of unknown outcome", ledger.open_saves)
        for kind, count in faults.counts.items():
            table.tell(kind, count)
        table.tell("reads held to the ledger, and entries compared", ledger.checks)
        table.tell("  of these cache entries compared after the last rebuild", self._compared)
        for wrong in book.WRONGS:
            table.hold(wrong, ledger.wrongs[wrong], 0)
        table.hold("consistency", f"{ledger.consistency():.4f} %", "100.0000 %")
        return table
