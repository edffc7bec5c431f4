"""The requests of one process, each with the judgement of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.chaos import ledger as book

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from tests.chaos.ledger import Key, Ledger, Place

CERTAINLY_NOT_WRITTEN = "PG_WRITE_ERROR"
UNKNOWN = "PG_WRITE_UNKNOWN"


class Step(NamedTuple):
    """A request, and what is to be done with its answer."""

    request: dict[str, object]
    judge: Callable[[dict[str, Any]], None]


class Session:
    """What one process was acknowledged, and what its cache has shown to it: it must not be shown less."""

    def __init__(self) -> None:
        self.own: dict[Key, Place] = {}
        self.shown: dict[Key, Place] = {}


class Requests:
    """Makes the steps of one process. What no fault explains is written into the ledger."""

    def __init__(self, who: str, ledger: Ledger, session: Session, random: Random) -> None:
        self._who = who
        self._ledger = ledger
        self._session = session
        self._random = random

    def save(self, key: Key, expected_revision: int | None = None) -> Step:
        """A save of a new ticket; with `expected_revision` a compare-and-set."""
        ticket = self._ledger.attempt(key)
        request: dict[str, object] = {"action": "save", **key.ids, "state_data": key.state(ticket)}
        if expected_revision is not None:
            request["expected_revision"] = expected_revision

        def judge(answer: dict[str, Any]) -> None:
            if answer["success"]:
                row = answer["data"]
                self._acknowledged(key, ticket, row)
                if expected_revision is not None and row["revision"] != expected_revision + 1:
                    self._ledger.wrong(book.REFUSED_WRONGLY, f"{self._who}: {request} was answered {row}")
            elif answer["code"] == CERTAINLY_NOT_WRITTEN or (
                answer["code"] == "REVISION_CONFLICT" and expected_revision is not None
            ):
                self._ledger.refused(self._who, key, ticket)
            elif answer["code"] != UNKNOWN:
                self._unexplained(request, answer)

        return Step(request, judge)

    def delete(self, key: Key) -> Step:
        """A delete of an owned key."""
        ticket = self._ledger.attempt(key, removes=True)
        request: dict[str, object] = {"action": "delete", **key.ids}

        def judge(answer: dict[str, Any]) -> None:
            if answer["success"]:
                self._acknowledged(key, ticket, None)
            elif answer["code"] == CERTAINLY_NOT_WRITTEN:
                self._ledger.refused(self._who, key, ticket)
            elif answer["code"] != UNKNOWN:
                self._unexplained(request, answer)

        return Step(request, judge)

    def get(self, key: Key, revisions: list[int]) -> Step:
        """A read of PostgreSQL; puts the revision that it found, or 0, into `revisions`."""
        floor = self._ledger.floor(key)
        request: dict[str, object] = {"action": "get", **key.ids}

        def judge(answer: dict[str, Any]) -> None:
            if answer["success"]:
                row = answer["data"] if answer["data"]["found"] else None
                self._ledger.judge(self._who, key, row, {book.LOST: floor})
                revisions.append(row["revision"] if row else 0)
            elif answer["code"] != "PG_READ_ERROR":
                self._unexplained(request, answer)

        return Step(request, judge)

    def cached_get(self, key: Key) -> Step:
        """A read through the cache, which must not show less than the process was acknowledged or shown before."""
        stored = self._ledger.floor(key)
        own = self._session.own.get(key, book.START)
        request: dict[str, object] = {"action": "cached_get", **key.ids}
        if self._random.random() < 0.3:
            request["allow_stale"] = True

        def judge(answer: dict[str, Any]) -> None:
            if not answer["success"]:
                if answer["code"] != "PG_READ_ERROR":
                    self._unexplained(request, answer)
                return
            row = answer["data"] if answer["data"]["found"] else None
            floors = {book.OLDER_THAN_OWN: own}
            if answer["data"]["source"] != "sqlite":
                floors[book.LOST] = stored
            if row is not None:
                floors[book.WENT_BACK] = self._session.shown.get(key, book.START)
            place = self._ledger.judge(self._who, key, row, floors)
            self._session.shown[key] = max(place, self._session.shown.get(key, book.START))

        return Step(request, judge)

    def list(self, keys: list[Key]) -> Step:
        """A list of the workflow of `keys`, which are all of its keys."""
        floors = {key: self._ledger.floor(key) for key in keys}
        request: dict[str, object] = {"action": "list", "workflow_id": keys[0].workflow_id}

        def judge(answer: dict[str, Any]) -> None:
            if answer["success"]:
                rows = {row["step_id"]: row for row in answer["data"]["checkpoints"]}
                for key, floor in floors.items():
                    self._ledger.judge(self._who, key, rows.pop(key.step_id, None), {book.LOST: floor})
                if rows:
                    self._ledger.wrong(book.NEVER_SAVED, f"{self._who} found in a list: {rows}")
            elif answer["code"] != "PG_LIST_ERROR":
                self._unexplained(request, answer)

        return Step(request, judge)

    def verify(self) -> Step:
        """A verification of everything; during a storm any result may be true."""
        return self._either({"action": "verify"}, "VERIFY_FAILED")

    def rebuild(self) -> Step:
        """A rebuild of the whole cache."""
        return self._either({"action": "rebuild"}, "REBUILD_FAILED")

    def healthcheck(self) -> Step:
        """A question for the health, which is always answered."""
        return self._either({"action": "healthcheck"}, None)

    def _either(self, request: dict[str, object], failure: str | None) -> Step:
        def judge(answer: dict[str, Any]) -> None:
            if not answer["success"] and answer["code"] != failure:
                self._unexplained(request, answer)

        return Step(request, judge)

    def _acknowledged(self, key: Key, ticket: int, row: dict[str, Any] | None) -> None:
        place = self._ledger.acknowledged(self._who, key, ticket, row)
        self._session.own[key] = max(place, self._session.own.get(key, book.START))

    def _unexplained(self, request: dict[str, object], answer: dict[str, Any]) -> None:
        short = {name: value for name, value in request.items() if name != "state_data"}
        self._ledger.wrong(book.REFUSED_WRONGLY, f"{self._who}: {short} was answered {answer}")
