"""What a PostgreSQL error means, decided in one place: by SQLSTATE, then by the state of the connection.

Never by a Python class of several states (54000 "row too big" is an OperationalError in psycopg and is the caller's
mistake) and never by message text, which is translated.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import psycopg

from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from psycopg import Connection


class Failure(Enum):
    """How to go on after an error. Only BROKEN leaves open whether a write happened."""

    CALLER = "the request asks for what PostgreSQL cannot do"
    REPEAT = "rolled back to resolve a conflict; the same statement may be sent again"
    UNPREPARED = "a prepared statement is not known where it was sent; send it unprepared"
    RECONNECT = "certainly not done; another server or a new session may do it"
    BROKEN = "the connection is gone; whether the statement was done is open"
    REFUSED = "certainly not done"


class DatabaseUnusable(Exception):
    """The database cannot serve as the authority; one sentence says why and what to do."""


class Unreachable(DatabaseUnusable):
    """No connection could be made."""


_BY_STATE = {
    "26000": Failure.UNPREPARED,  # invalid_sql_statement_name: a pooler gave another server session
    "42P05": Failure.UNPREPARED,  # duplicate_prepared_statement: likewise
    "40001": Failure.REPEAT,  # serialization_failure
    "40P01": Failure.REPEAT,  # deadlock_detected
    "40003": Failure.BROKEN,  # statement_completion_unknown
    "25006": Failure.RECONNECT,  # read_only_sql_transaction: a standby, or a primary that was demoted
    "42P01": Failure.RECONNECT,  # undefined_table: the store was dropped or the database made anew
    "3F000": Failure.RECONNECT,  # invalid_schema_name: likewise
    "0A000": Failure.RECONNECT,  # feature_not_supported: so is a kept plan after a column has changed its type
    "57P05": Failure.RECONNECT,  # idle_session_timeout: only a session that does nothing is ended so
}
_CALLER_CLASSES = ("22", "54")  # data exception, program limit exceeded (too long for an index, too deep)

_PLAIN_MESSAGE_CLASSES = ("42", "25", "53", "55", "57", "58", "40")  # their messages name objects, never values


def classify(error: psycopg.Error, connection: Connection[tuple[object, ...]]) -> Failure:
    """What `error`, raised on `connection`, means."""
    state = error.sqlstate or ""
    if state in _BY_STATE:
        return _BY_STATE[state]
    if connection.closed or connection.broken:
        return Failure.BROKEN
    if state.startswith(_CALLER_CLASSES):
        return Failure.CALLER
    return Failure.REFUSED


def sentence(error: psycopg.Error) -> str:
    """The error in words, without values of the request and without secrets."""
    state = error.sqlstate
    if state is None:
        return "the connection to PostgreSQL broke"
    text = f"PostgreSQL answered {type(error).__name__} (SQLSTATE {state})"
    if state.startswith(_PLAIN_MESSAGE_CLASSES) and error.diag.message_primary:
        text += f": {error.diag.message_primary}"
    if state == "57014":
        text += "; CHECKPOINT_STATEMENT_TIMEOUT sets the limit"
    return text


def caller_sentence(error: psycopg.Error) -> str:
    """What the caller did that PostgreSQL cannot do, for a failure that is CALLER's."""
    if error.sqlstate == "54001":
        return "state_data is nested too deeply for PostgreSQL; use fewer levels"
    if error.sqlstate == "54000":
        return "state_data or an id is too large for PostgreSQL; make it smaller"
    return f"state_data or an id holds what PostgreSQL cannot store (SQLSTATE {error.sqlstate})"


def lacks_a_right(error: psycopg.Error) -> bool:
    """Whether the role of DATABASE_URL may not do it."""
    return error.sqlstate == "42501"


def leaves_unreachable(error: psycopg.Error, failure: Failure) -> bool:
    """Whether PostgreSQL counts as unreachable after it: it is gone, or did not answer in time."""
    return failure is Failure.BROKEN or error.sqlstate == "57014"


# Phrases of libpq that hold nothing of the connection string.
_PHRASES = (
    "Connection refused",
    "No such file or directory",
    "Permission denied",
    "No route to host",
    "Network is unreachable",
    "Connection reset by peer",
    "could not translate host name",
    "failed to resolve host",
    "server closed the connection unexpectedly",
    "no password supplied",
    "server does not support SSL",
    "certificate verify failed",
    "session is read-only",
    "session is not read-only",
    "server is in hot standby mode",
)


def connect_sentence(error: psycopg.Error, where: str | None, secrets: tuple[str, ...]) -> str:
    """Why no connection could be had, in words of our own or of the server, never with a secret.

    The driver's text is not passed on: for a connection string that is wrong in some ways it holds the password.
    Without `where` the string itself is doubtful, and nothing of it or of what was made of it is told.
    """
    if where is None:
        return (
            "PostgreSQL cannot be reached; DATABASE_URL does not look right: "
            "look at host, port and database, and percent-encode the password"
        )
    text = str(error)
    hint = "; see that it runs there, or mend DATABASE_URL"
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        reason = "it did not answer within CHECKPOINT_CONNECT_TIMEOUT"
    elif "FATAL:" in text:
        reason = text.rsplit("FATAL:", 1)[1].split("\n", 1)[0].strip()
        hint = ""
    else:
        reason = next((phrase for phrase in _PHRASES if phrase in text), "no connection could be made")
    if any(secret in reason for secret in secrets):
        reason = "the server refused the connection"
    return f"PostgreSQL at {where}, cannot be reached: {reason}{hint}"


def nothing_done() -> CheckpointError:
    """The answer where a write refused to act, since it came too late, each time it was sent."""
    return CheckpointError(
        "PG_WRITE_ERROR",
        "the statement did nothing, since it was delayed beyond CHECKPOINT_STATEMENT_TIMEOUT; send it again",
    )
