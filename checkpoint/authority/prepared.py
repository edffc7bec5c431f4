"""The statements of every save and get, sent by libpq's own calls.

psycopg's cursor converts and loads whatever it is given; for a statement whose types are known that costs more than the
statement itself. And it cannot do anything else while the server works. Errors, waiting and signals are psycopg's, as
with a cursor.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import struct
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import generators
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format

from checkpoint.adaptive_wait import AdaptiveWait
from checkpoint.authority.adaptation import JsonArray, StateText, TextArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from psycopg import Connection
    from psycopg.pq.abc import PGconn, PGresult

    Row = tuple[Any, ...]
    Work = Callable[[], object] | None

UNPREPARED_USES = 2  # a process of one request does not pay for preparing
AWAKE_SECONDS = 0.0006  # a commit on a fast disk
PUSH_SECONDS = 0.01  # what a server that works takes to receive a batch

_BINARY = (TextArray, JsonArray)
_JSON = psycopg.adapters.types["json"].oid
_int8 = struct.Struct("!q").unpack
_oid = struct.Struct("!I").unpack
_MICROS_TO_2000 = 946_684_800_000_000  # from the epoch to PostgreSQL's own; its unit is the microsecond too
_LOADERS: dict[int, Callable[[bytes], Any]] = {
    psycopg.adapters.types["int8"].oid: lambda value: _int8(value)[0],
    psycopg.adapters.types["oid"].oid: lambda value: _oid(value)[0],
    psycopg.adapters.types["timestamptz"].oid: lambda value: _int8(value)[0] + _MICROS_TO_2000,
    psycopg.adapters.types["text"].oid: lambda value: value.decode(),
    _JSON: lambda value: value,
}


class PreparedStatement:
    """One statement with named parameters.

    Values are str, int, None or of the types of `adaptation`; `meanwhile` is called while the server works.
    """

    def __init__(self, name: str, text: bytes) -> None:
        # Of this process alone: behind a pooler that hides itself another's statement could stand under the same name.
        self._name = f"checkpoint_{name}_{os.urandom(8).hex()}".encode()
        found: dict[str, int] = {}

        def numbered(match: re.Match[bytes]) -> bytes:
            return b"$%d" % found.setdefault(match[1].decode(), len(found) + 1)

        self._text = re.sub(rb"%\((\w+)\)s", numbered, text)
        self._names = tuple(found)
        self._types = [_JSON if name == "state_data" else 0 for name in found]
        self._loaders: Sequence[Callable[[bytes], Any]] | None = None
        self._formats: Sequence[Format] | None = None
        self._uses = 0
        self._wait = AdaptiveWait(AWAKE_SECONDS)
        self._prepared_on: Connection[Any] | None = None

    def row(self, connection: Connection[Any], parameters: Mapping[str, Any], meanwhile: Work = None) -> Row | None:
        """The first row, or None. Raises psycopg.Error.

        Columns are int8, oid, text, json (as bytes) or timestamptz (as microseconds since the epoch).
        """
        result = self._run(connection, parameters, meanwhile)
        if not result.ntuples:
            return None
        if self._loaders is None:
            self._loaders = [_LOADERS[result.ftype(column)] for column in range(result.nfields)]
        return tuple(
            None if (value := result.get_value(0, column)) is None else load(value)
            for column, load in enumerate(self._loaders)
        )

    def rows(self, connection: Connection[Any], parameters: Mapping[str, Any], meanwhile: Work = None) -> list[Row]:
        """All rows, loaded as the connection is set up to. Raises psycopg.Error."""
        transformer = Transformer(connection)
        result = self._run(connection, parameters, meanwhile)
        transformer.set_pgresult(result, format=Format.BINARY)
        return transformer.load_rows(0, result.ntuples, tuple)

    def _run(self, connection: Connection[Any], parameters: Mapping[str, Any], meanwhile: Work) -> PGresult:
        given = [parameters[name] for name in self._names]
        if self._formats is None:
            self._formats = [Format.BINARY if isinstance(value, _BINARY) else Format.TEXT for value in given]
        values = [_dump(value) for value in given]
        pgconn = connection.pgconn
        self._uses += 1
        if connection.prepare_threshold is None or self._uses <= UNPREPARED_USES:
            pgconn.send_query_params(self._text, values, self._types, self._formats, Format.BINARY)
        else:
            if self._prepared_on is not connection:
                if meanwhile is not None:
                    meanwhile()  # there are two waits now
                    meanwhile = None
                pgconn.send_prepare(self._name, self._text, self._types)
                _result(connection)
                self._prepared_on = connection
            pgconn.send_query_prepared(self._name, values, self._formats, Format.BINARY)
        if meanwhile is not None:
            _push(pgconn)
            meanwhile()
        return self._wait.until(partial(_is_there, pgconn), partial(_result, connection))


def _push(pgconn: PGconn) -> None:
    """Sends what did not go at once, as long as the server takes it: it works only when it has everything."""
    give_up_at = time.monotonic() + PUSH_SECONDS
    with contextlib.suppress(psycopg.Error, OSError, ValueError):  # told when the result is taken
        while pgconn.flush() and (left := give_up_at - time.monotonic()) > 0:
            if select.select([pgconn.socket], [pgconn.socket], [], left)[0]:
                pgconn.consume_input()


def _result(connection: Connection[Any]) -> PGresult:
    result: PGresult = connection.wait(generators.execute(connection.pgconn))[-1]
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return result
    raise error_from_result(result)


def _is_there(pgconn: PGconn) -> bool:
    """Whether the result of what was sent has come whole, or cannot come any more."""
    try:
        if pgconn.flush():
            return False
        pgconn.consume_input()
        return not pgconn.is_busy()
    except psycopg.Error:
        return True


def _dump(value: str | int | StateText | TextArray | JsonArray | None) -> bytes | None:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, StateText):
        return value.text
    if isinstance(value, _BINARY):
        return value.binary()
    return None if value is None else b"%d" % value
