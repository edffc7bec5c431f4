"""What was acknowledged, what may have been written, and whether what is read can be true (contract, section 3).

Every attempt on a key has a ticket, and the state that is saved follows from key and ticket alone. So a state that is
read tells which attempt it was. `PG_WRITE_UNKNOWN`, and no answer at all, leave a ticket open: it may stand or not.
"""

from __future__ import annotations

import threading
import time
import zlib
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Place = tuple[int, int]
"""Where in the history of a key a state belongs: its ticket, or on a contended key its id and revision."""
START: Place = (0, 0)

LOST = "acknowledged saves lost"
NEVER_SAVED = "values read that were never saved"
OLDER_THAN_OWN = "reads of one process older than its own acknowledged save"
WENT_BACK = "cached reads of one process older than one before"
CACHE_DIFFERS = "cache entries different from PostgreSQL after the last rebuild"
TWO_VALUES = "revisions under which two values were seen"
REFUSED_WRONGLY = "answers that no fault explains"
BAD_ANSWERS = "answers that break the envelope or came too late"
ENDED_ALONE = "workers that ended without being killed"
WRONGS = (
    *(LOST, NEVER_SAVED, OLDER_THAN_OWN, WENT_BACK, CACHE_DIFFERS, TWO_VALUES),
    *(REFUSED_WRONGLY, BAD_ANSWERS, ENDED_ALONE),
)
KEPT_ACCOUNTS = 1000


class Key:
    """One checkpoint. An owned key has one writer, who writes one after the other and deletes too; a contended one many."""

    def __init__(self, workflow_id: str, step_id: str, *, owned: bool) -> None:
        self.workflow_id = workflow_id
        self.step_id = step_id
        self.owned = owned
        self.issued = 0
        self.floor = START
        self.refused: set[int] = set()
        self.removals: set[int] = set()
        self.read_while_open: set[int] = set()
        self.versions: dict[tuple[int, int], int] = {}

    @property
    def ids(self) -> dict[str, str]:
        """The fields that name it in a request."""
        return {"workflow_id": self.workflow_id, "step_id": self.step_id}

    def __str__(self) -> str:
        return f"{self.workflow_id}/{self.step_id}"

    def state(self, ticket: int) -> dict[str, object]:
        """The state that belongs to a ticket: mostly small, some of kilobytes, few too large to be cached at once."""
        lot = zlib.crc32(f"{self} {ticket}".encode())
        length = lot % 300 if lot % 100 < 90 else lot % 8000 if lot % 1000 < 997 else 300_000
        return {"key": str(self), "ticket": ticket, "fill": (f"{ticket}." * length)[:length]}

    def place(self, ticket: int, row: Mapping[str, Any]) -> Place:
        """Where a row with the state of `ticket` stands in the history."""
        return (ticket, 0) if self.owned else (row["id"], row["revision"])


class Ledger:
    """The book of one storm, kept by all its threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self.checks = 0
        self.acknowledged_saves = 0
        self.open_saves = 0
        self.wrongs: Counter[str] = Counter()
        self.journal: list[str] = []
        self._lost: set[tuple[str, Place]] = set()

    def attempt(self, key: Key, *, removes: bool = False) -> int:
        """A ticket for a save, or for a delete, that is about to be sent."""
        with self._lock:
            key.issued += 1
            self.open_saves += 1
            if removes:
                key.removals.add(key.issued)
            return key.issued

    def acknowledged(self, who: str, key: Key, ticket: int, row: Mapping[str, Any] | None) -> Place:
        """A save was answered with `row`, or a delete (None) was answered, with success."""
        with self._lock:
            self.open_saves -= 1
            key.read_while_open.discard(ticket)
            if row is not None:
                self.acknowledged_saves += 1
                self._version(who, key, ticket, row)
            place = (ticket, 0) if row is None else key.place(ticket, row)
            key.floor = max(key.floor, place)
            return place

    def refused(self, who: str, key: Key, ticket: int) -> None:
        """An attempt was answered with a code that says: certainly not written."""
        with self._lock:
            self.open_saves -= 1
            key.refused.add(ticket)
            key.removals.discard(ticket)
            if ticket in key.read_while_open:
                self._wrong(NEVER_SAVED, f"{who} was refused ticket {ticket} of {key}, which had been read before")

    def floor(self, key: Key) -> Place:
        """What a read of PostgreSQL that begins now must show at least."""
        with self._lock:
            return key.floor

    def judge(self, who: str, key: Key, row: Mapping[str, Any] | None, floors: Mapping[str, Place]) -> Place:
        """Holds what was read (None: nothing there) to the book and to `floors`, each named by the wrong of its breach.

        The place of what was read; START for nothing.
        """
        with self._lock:
            self.checks += 1
            if row is None:
                last_removal = (max(key.removals, default=0), 0)
                for wrong, floor in floors.items():
                    if floor != START and not (key.owned and last_removal >= floor):
                        self._below(wrong, who, key, floor, "nothing")
                return START
            state = row["state_data"]
            ticket = state.get("ticket")
            if not isinstance(ticket, int) or not 0 < ticket <= key.issued or state != key.state(ticket):
                self._wrong(NEVER_SAVED, f"{who} read in {key} what nobody sent: {str(state)[:200]}")
                return START
            if ticket in key.refused or ticket in key.removals:
                self._wrong(NEVER_SAVED, f"{who} read in {key} ticket {ticket}, which was refused; row {_short(row)}")
            place = key.place(ticket, row)
            if place > key.floor:
                key.read_while_open.add(ticket)
            self._version(who, key, ticket, row)
            for wrong, floor in floors.items():
                if place < floor:
                    self._below(wrong, who, key, floor, f"ticket {ticket}, {_short(row)}")
            return place

    def wrong(self, what: str, account: str) -> None:
        """One more breach of a promise, with what is known of it."""
        with self._lock:
            self._wrong(what, account)

    def note(self, event: str) -> None:
        """Writes down what happened, so that the journal tells what a wrong may come from."""
        with self._lock:
            self._note(event)

    def right(self) -> None:
        """One more check that held."""
        with self._lock:
            self.checks += 1

    def consistency(self) -> float:
        """The share of checks that held, in percent; 100 only where all of them did."""
        wrong = min(sum(self.wrongs.values()), self.checks)
        share = 100 * (1 - wrong / self.checks) if self.checks else 0.0
        return share if wrong == 0 else min(share, 99.9999)

    def _version(self, who: str, key: Key, ticket: int, row: Mapping[str, Any]) -> None:
        version = (row["id"], row["revision"])
        known = key.versions.setdefault(version, ticket)
        if known != ticket:
            self._wrong(TWO_VALUES, f"{who} saw ticket {ticket} of {key} as {version}, which is ticket {known}")

    def _below(self, wrong: str, who: str, key: Key, floor: Place, found: str) -> None:
        if wrong == LOST:
            if (str(key), floor) in self._lost:
                return
            self._lost.add((str(key), floor))
        self._wrong(wrong, f"{who} read {found} in {key}, where {floor} was acknowledged or read before")

    def _wrong(self, what: str, account: str) -> None:
        self.wrongs[what] += 1
        self._note(f"{what.upper()}: {account}")

    def _note(self, event: str) -> None:
        if len(self.journal) < KEPT_ACCOUNTS:
            self.journal.append(f"{time.monotonic() - self._began:8.3f} s  {event}")


def _short(row: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} {row[name]}" for name in ("id", "revision", "source", "stale", "cached_at") if name in row
    )
