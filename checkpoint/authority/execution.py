"""Runs statements on the kept connection: what is repeated, what is looked up, and which code a failure becomes.

Reads are repeated once on a new connection when the old one broke. A write whose connection broke has an unknown
outcome: its old backend is ended first, then the outcome is looked up, and only a write that did not happen is sent
again (contract, section 3). Every answer comes within twice the time-outs (contract, section 4).
"""

from __future__ import annotations

import random
import time
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import psycopg

from checkpoint.authority.deadline import Watchdog
from checkpoint.authority.failure import (
    DatabaseUnusable,
    Failure,
    Unreachable,
    caller_sentence,
    classify,
    lacks_a_right,
    leaves_unreachable,
    sentence,
)
from checkpoint.authority.session import Session
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection, Cursor

    from checkpoint.settings import Settings

T = TypeVar("T")

MAX_REPEATS = 3
END_BACKEND_MS = 1000
LOST_COMMIT_FUNCTION = "SyncRepWaitForLSN"  # the function of the server that warns of it; the warning is translated


class Executor:
    """Runs one piece of work at a time. `log` takes a level, an event and its fields."""

    def __init__(self, settings: Settings, on_store: Callable[[str], None], log: Callable[..., None]) -> None:
        self._settings = settings
        self._watchdog = Watchdog()
        self._log = log
        self._not_replicated = False
        self._give_up_at = 0.0
        self.session = Session(settings, self._watchdog, on_store, self._notice)

    def read(
        self, code: str, work: Callable[[Cursor[Any]], T], *, before_connecting: Callable[[], object] | None = None
    ) -> T:
        """What `work` reads; repeated once on a new connection. Raises `code`, or INVALID_ARG for the caller's part."""
        return self._run(code, work, None, before_connecting, writes=False)

    def write(
        self,
        code: str,
        work: Callable[[Cursor[Any]], T],
        settle: Callable[[Cursor[Any]], T | None] | None,
        *,
        before_connecting: Callable[[], object] | None = None,
    ) -> T:
        """What `work` writes, done once.

        After a break `settle` looks the outcome up: it returns what `work` would have, or None when nothing was
        written. Without `settle`, and when it cannot tell, the answer is PG_WRITE_UNKNOWN.
        """
        return self._run(code, work, settle, before_connecting, writes=True)

    def unwatched(self, work: Callable[[], object]) -> Callable[[], None]:
        """`work` to be done while a statement is under way, in time that is not counted as the statement's."""
        return partial(self._watchdog.pause, work)

    def _run(
        self,
        code: str,
        work: Callable[[Cursor[Any]], T],
        settle: Callable[[Cursor[Any]], T | None] | None,
        before_connecting: Callable[[], object] | None,
        *,
        writes: bool,
    ) -> T:
        attempts = _Attempts()
        self._give_up_at = time.monotonic() + 2 * (
            self._settings.connect_timeout * self.session.address.hosts() + self._settings.statement_timeout
        )
        while True:
            connection = self._connect(code, before_connecting, certain=attempts.certain)
            try:
                result = self._guarded(connection, work)
            except psycopg.Error as error:
                failure = classify(error, connection)
                if failure is Failure.BROKEN and writes:
                    settled = self._settle(error, settle, attempts)
                    if settled is not None:
                        return settled
                self._go_on_or_give_up(code, error, failure, attempts, writes=writes)
                continue
            # Cut short in the wait for its standby, a commit comes back as a success; its warning may be switched off.
            unconfirmed = writes and (self._not_replicated or self._watchdog.fired)
            self.session.renew_if_outdated(self._give_up_at)
            if unconfirmed:
                self._not_confirmed()
            return result

    def _go_on_or_give_up(
        self, code: str, error: psycopg.Error, failure: Failure, attempts: _Attempts, *, writes: bool
    ) -> None:
        """Prepares the next attempt, or raises the answer."""
        if failure is Failure.CALLER:
            raise CheckpointError("INVALID_ARG", caller_sentence(error)) from None
        if failure in (Failure.REPEAT, Failure.UNPREPARED) and attempts.repeats < MAX_REPEATS:
            attempts.repeats += 1
            if failure is Failure.UNPREPARED:
                self.session.unprepare()
            else:
                time.sleep(random.uniform(0.001, 0.02))  # noqa: S311 - so that two that collided do not meet again
            return
        renews = failure in (Failure.RECONNECT, Failure.BROKEN)
        if renews:
            self.session.discard()
        if renews and not attempts.renewed and (writes or not self._watchdog.fired):
            attempts.renewed = True
            return
        if failure is Failure.BROKEN and writes and not attempts.certain:
            self._unknown(error)
        reason = sentence(error)
        if lacks_a_right(error):
            reason += self.session.grant_that_helps()
        self._log("ERROR", "PostgreSQL failed", code=code, reason=reason, sqlstate=error.sqlstate)
        raise CheckpointError(code, reason, unreachable=leaves_unreachable(error, failure)) from None

    def _connect(self, code: str, before_connecting: Callable[[], object] | None, *, certain: bool) -> Connection[Any]:
        try:
            return self.session.connection(self._give_up_at, before_connecting)
        except (DatabaseUnusable, psycopg.Error) as error:
            reason = str(error) if isinstance(error, DatabaseUnusable) else sentence(error)
            self._log("ERROR", "no connection to PostgreSQL", code=code, reason=reason)
            if not certain:
                code = "PG_WRITE_UNKNOWN"
                reason += "; whether an earlier attempt was written is not known, a get tells what stands"
            raise CheckpointError(code, reason, unreachable=isinstance(error, Unreachable)) from None

    def _guarded(self, connection: Connection[Any], work: Callable[[Cursor[Any]], T]) -> T:
        self._not_replicated = False
        left = max(0.1, min(self._settings.statement_timeout, self._give_up_at - time.monotonic()))
        with self._watchdog.guard(connection, left):
            try:
                return work(self.session.cursor(connection))
            except psycopg.Error:
                raise
            except BaseException:  # Ctrl-C above all
                self.session.end_statement()
                raise

    def _settle(
        self,
        error: psycopg.Error,
        settle: Callable[[Cursor[Any]], T | None] | None,
        attempts: _Attempts,
    ) -> T | None:
        """The outcome of a write whose connection broke, or None where it did not happen."""
        old = self.session.greeting
        self.session.discard()
        if settle is None:
            self._unknown(error)
        try:
            connection = self.session.connection(self._give_up_at)
            if old.direct:
                self._guarded(connection, lambda cursor: self._end_backend(cursor, old.backend_pid, old.backend_start))
            else:
                attempts.certain = False  # behind a pooler the old session cannot be found; it may still act
            result = self._guarded(connection, settle)
            if result is not None:  # it stands on this server; a success it is when the standby has it too
                self._guarded(connection, self._await_standby)
        except (psycopg.Error, DatabaseUnusable) as second:
            self._log("ERROR", "what became of a write could not be looked up", reason=type(second).__name__)
            self.session.discard()
            self._unknown(error)
        if self._not_replicated or self._watchdog.fired:
            self._not_confirmed()
        return result

    def _await_standby(self, cursor: Cursor[Any]) -> None:
        cursor.execute(self.session.statement("await_standby"))

    def _end_backend(self, cursor: Cursor[Any], pid: int, started: str | None) -> None:
        parameters = {"pid": pid, "backend_start": started, "wait_ms": END_BACKEND_MS}
        if cursor.execute(self.session.statement("end_backend"), parameters).fetchone() != (True,):
            raise DatabaseUnusable("the old session could not be ended")

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        """A commit that was cut short while it waited for its standby is reported as a success, with a warning."""
        if diagnostic.source_function == LOST_COMMIT_FUNCTION:
            self._not_replicated = True

    def _unknown(self, error: psycopg.Error) -> NoReturn:
        reason = sentence(error)
        self._log("ERROR", "the outcome of a write is not known", reason=reason, sqlstate=error.sqlstate)
        raise CheckpointError(
            "PG_WRITE_UNKNOWN", f"{reason}; whether the change was written is not known, a get tells what stands"
        ) from None

    def _not_confirmed(self) -> NoReturn:
        reason = "the commit was not confirmed in time, by the synchronous standby if there is one"
        self._log("ERROR", "the outcome of a write is not known", reason=reason, sqlstate=None)
        raise CheckpointError("PG_WRITE_UNKNOWN", f"{reason}; a get tells what stands")


class _Attempts:
    """What was tried for one request. `certain` tells that no attempt can have been written, or be written later."""

    def __init__(self) -> None:
        self.repeats = 0
        self.renewed = False
        self.certain = True
