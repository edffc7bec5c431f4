"""The one kept connection: opened at the first need, greeted once, replaced when it broke (contract, section 3)."""

from __future__ import annotations

import contextlib
import math
import os
import select
import time
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg
from psycopg import generators
from psycopg.pq import TransactionStatus

from checkpoint import sqlfile
from checkpoint.authority import grants, migrations
from checkpoint.authority.adaptation import adapt
from checkpoint.authority.address import Address, in_words, secrets_of
from checkpoint.authority.failure import DatabaseUnusable, Unreachable, connect_sentence, sentence
from checkpoint.authority.prepared import PreparedStatement
from checkpoint.authority.server_clock import ServerClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg import Connection, Cursor

    from checkpoint.authority.deadline import Watchdog
    from checkpoint.settings import Settings


LEAST_CONNECT_SECONDS = 0.5
CANCEL_SECONDS = 1.0
PREPARE_THRESHOLD = 3


class Greeting(msgspec.Struct, frozen=True):
    """What the server says of itself when a connection is made. `backend_pid` may be a pooler's."""

    backend_pid: int
    table_oid: int
    clock_us: int
    server_version: str
    verbatim: bool
    schema_version: int | None
    store_id: str | None
    backend_start: str | None
    session: str | None

    @property
    def direct(self) -> bool:
        """Whether the session is ours alone: no pooler stands between that gives it to others."""
        return self.session is not None


class Session:
    """Holds the connection.

    `on_store` is told the identity of the store whenever a connection was made, `on_notice` every notice of the server.
    """

    def __init__(
        self,
        settings: Settings,
        watchdog: Watchdog,
        on_store: Callable[[str], None],
        on_notice: Callable[[psycopg.errors.Diagnostic], None],
    ) -> None:
        self._settings = settings
        self.address = Address(settings.database_url or "")
        self._watchdog = watchdog
        self._on_store = on_store
        self._on_notice = on_notice
        self._connection: Connection[Any] | None = None
        self._poll = select.poll()
        self._cursor: Cursor[Any] | None = None
        self._greeting: Greeting | None = None
        self._prepare = True
        self._outdated = False
        self._last_words = False
        self.clock = ServerClock()
        self.schema = '"' + settings.schema.replace('"', '""') + '"'
        self._statements = self.load("session.sql") | self.load("statements.sql")
        self._prepared: dict[str, PreparedStatement] = {}

    def load(self, name: str) -> dict[str, bytes]:
        """The statements of a file of this package, the settings filled in: {schema}, {table}, {age_limit}."""
        fillings = {
            "{schema}": self.schema,
            "{table}": _literal(f"{self.schema}.workflow_checkpoints"),
            "{age_limit}": f"interval '{self._settings.statement_timeout + 1:.3f} seconds'",
        }
        statements = sqlfile.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), name))
        for mark, filling in fillings.items():
            statements = {name: text.replace(mark, filling) for name, text in statements.items()}
        return {name: text.encode() for name, text in statements.items()}

    def statement(self, name: str) -> bytes:
        """The text of a statement of these two files, its schema filled in."""
        return self._statements[name]

    def prepared(self, name: str) -> PreparedStatement:
        """The same to be sent by the fast way; for a statement of one row."""
        if name not in self._prepared:
            self._prepared[name] = PreparedStatement(name, self._statements[name])
        return self._prepared[name]

    def connection(self, give_up_at: float, before_connecting: Callable[[], object] | None = None) -> Connection[Any]:
        """The connection, made now if there is none, before the monotonic time given.

        `before_connecting` is what may not wait as long as that can take. Raises DatabaseUnusable with the reason in
        one sentence.
        """
        if self._connection is not None and self._connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self.end_statement()  # Ctrl-C came where nobody could catch it
        if self._connection is not None and self._has_ended(self._connection):
            self.discard()
        if self._connection is None:
            if before_connecting is not None:
                before_connecting()
            self._connection = self._connect(give_up_at)
            self._poll = select.poll()
            self._poll.register(self._connection, select.POLLIN)
        return self._connection

    def cursor(self, connection: Connection[Any]) -> Cursor[Any]:
        """The one cursor of the connection; making one costs as much as a small statement."""
        if self._cursor is None:
            self._cursor = connection.cursor(binary=True)
        return self._cursor

    def grant_that_helps(self) -> str:
        """What to grant after a refusal for want of a right, as the end of a sentence."""
        return "" if self._connection is None else self._grant_that_helps(self._connection)

    def _grant_that_helps(self, connection: Connection[Any]) -> str:
        with self._watchdog.guard(connection, self._settings.connect_timeout):
            grant = grants.missing(connection, self.schema)
        return f"; have its owner say: {grant}" if grant else "; grant it to the role of DATABASE_URL"

    def _has_ended(self, connection: Connection[Any]) -> bool:
        """Whether the server has ended the idle session: seen before a statement goes out, nothing is uncertain.

        What waits on the socket of an idle session is its last words, its end, or a mere notice.
        """
        self._last_words = False
        try:
            while self._poll.poll(0) and not self._last_words:
                connection.pgconn.consume_input()
                connection.pgconn.is_busy()  # reads what came
                if connection.closed:
                    return True
        except (psycopg.Error, OSError, ValueError):
            return True
        return self._last_words or connection.closed

    def _hear(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        self._last_words = diagnostic.severity_nonlocalized in ("FATAL", "PANIC")
        self._on_notice(diagnostic)

    @property
    def greeting(self) -> Greeting:
        """What the server said when the present or last connection was made."""
        if self._greeting is None:
            raise DatabaseUnusable("there was no connection to PostgreSQL yet")
        return self._greeting

    def stands_on(self, table_oid: int | None) -> None:
        """Takes note of the table that a statement worked on. Another one: the store was made anew."""
        self._outdated = table_oid != self.greeting.table_oid

    def renew_if_outdated(self, give_up_at: float) -> None:
        """Connects anew where the store was made anew under the connection, so that its identity is known."""
        if self._outdated:
            self.discard()
            with contextlib.suppress(DatabaseUnusable, psycopg.Error):
                self.connection(give_up_at)

    def end_statement(self) -> None:
        """Ends a statement whose answer nobody will take; the connection too where that cannot be done."""
        connection = self._connection
        if connection is None:
            return
        with self._watchdog.guard(connection, CANCEL_SECONDS), contextlib.suppress(psycopg.Error, OSError):
            if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
                connection.cancel_safe(timeout=CANCEL_SECONDS)
                connection.wait(generators.fetch_many(connection.pgconn))
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            self.discard()

    def discard(self) -> None:
        """Gives the connection up; the next need makes a new one."""
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error, OSError):
                connection.close()

    def unprepare(self) -> None:
        """No prepared statements from now on, on this and later connections."""
        self._prepare = False
        if self._connection is not None:
            self._connection.prepare_threshold = None

    def close(self) -> None:
        """Ends the connection, and the server if it is the product's own and nobody else uses it."""
        self.discard()
        self.address.release()

    def _connect(self, give_up_at: float) -> Connection[Any]:
        started = time.monotonic()
        if give_up_at - started < LEAST_CONNECT_SECONDS:
            raise Unreachable("PostgreSQL did not answer in time")
        parameters = self.address.parameters()
        parameters["connect_timeout"] = math.ceil(min(self._settings.connect_timeout, give_up_at - started))
        try:
            connection = psycopg.connect(**parameters, autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            raise Unreachable(connect_sentence(error, in_words(parameters), secrets_of(parameters))) from None
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED  # whatever the role's default is
        if self.address.has_more_hosts_than_known(connection, parameters):
            connection.close()
            return self._connect(give_up_at)
        try:
            limit = started + self._settings.connect_timeout * self.address.hosts()
            self._greet(connection, min(limit, give_up_at), give_up_at)
        except psycopg.errors.InsufficientPrivilege as error:
            with contextlib.closing(connection):
                raise DatabaseUnusable(sentence(error) + self._grant_that_helps(connection)) from None
        except psycopg.errors.UndefinedColumn:
            connection.close()
            raise DatabaseUnusable(
                f"the schema {self.schema} holds a table workflow_checkpoint_migrations or workflow_checkpoint_store "
                "that this program did not make; set CHECKPOINT_SCHEMA to a schema of its own"
            ) from None
        except BaseException:
            with contextlib.suppress(psycopg.Error, OSError):
                connection.close()
            raise
        return connection

    def _greet(self, connection: Connection[Any], limit: float, give_up_at: float) -> None:
        """Greets until `limit`; only making the tables may take until `give_up_at`. Both are monotonic times."""
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise DatabaseUnusable(f"the database is encoded in {encoding}; create one with ENCODING 'UTF8'")
        connection.add_notice_handler(self._hear)
        adapt(connection)
        greeting = self._ask(connection, limit)
        if greeting is None or (greeting.schema_version or 0) < migrations.latest():
            with self._watchdog.guard(connection, give_up_at - time.monotonic()):
                migrations.migrate(connection, self.schema)
            greeting = self._ask(connection, give_up_at)
        if greeting is None:
            raise DatabaseUnusable(f"the tables in {self.schema} were dropped while they were made; send it again")
        _insist_on_fitness(greeting, self.schema)
        if greeting.direct:
            with (
                self._watchdog.guard(connection, limit - time.monotonic()),
                contextlib.suppress(psycopg.errors.DataError, psycopg.errors.UndefinedObject),
            ):
                connection.execute(self.statement("notice_lost_client"))
        if greeting.direct and self._prepare:  # a statement prepared in a pooled session would stay for others
            connection.prepare_threshold = PREPARE_THRESHOLD
        self._greeting = greeting
        self._outdated = False
        self._on_store(str(greeting.store_id))

    def _ask(self, connection: Connection[Any], limit: float) -> Greeting | None:
        """The server's greeting, or None where the store has not been made yet."""
        milliseconds = str(int(self._settings.statement_timeout * 1000))
        parameters = {"pid": connection.info.backend_pid, "statement_timeout": milliseconds}
        with self._watchdog.guard(connection, limit - time.monotonic()):
            try:
                row = connection.execute(self.statement("greet"), parameters).fetchone()
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                return None
        if row is None:
            return None
        greeting = Greeting(*row)
        self.clock.tell(greeting.clock_us)
        return greeting


def _insist_on_fitness(greeting: Greeting, schema: str) -> None:
    if not greeting.verbatim:
        raise DatabaseUnusable("the database does not keep json text as it was sent; PostgreSQL itself does")
    if (greeting.schema_version or 0) > migrations.latest():
        raise DatabaseUnusable(
            f"the tables in {schema} are of version {greeting.schema_version}, newer than this program "
            f"({migrations.latest()}); update checkpoint-manager"
        )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
