"""Requests from the same process: keyword arguments in, a typed record out, by the way that all doors share."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar

import msgspec

from checkpoint import envelope, settings
from checkpoint.dispatch import Dispatcher
from checkpoint.errors import CheckpointError
from checkpoint.log import Log
from checkpoint.results import Result
from checkpoint.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Unpack

R = TypeVar("R", bound=Result)


class ManagerSettings(TypedDict, total=False):
    """The settings of contract, section 6, by their names without CHECKPOINT_, in lower case.

    What is left out comes from the environment; None stands for unset, whatever the environment says. There are no
    request lines here, so none may be too long: CHECKPOINT_MAX_REQUEST_BYTES has no part in it.
    """

    database_url: str | None
    schema: str | None
    data_dir: str | os.PathLike[str] | None
    artifacts_dir: str | os.PathLike[str] | None
    cache_ttl: float | None
    cache_max_bytes: int | None
    cache_wait_ms: int | None
    tenant: str | None
    rebuild_limit: int | None
    connect_timeout: float | None
    statement_timeout: float | None
    approval_secret: str | None
    approval_secret_previous: str | None
    approver: bool | None
    timezone: str | None
    log_level: str | None


class _Answer(msgspec.Struct, Generic[R]):
    data: R


class InProcess:
    """The settings, one runtime, and one lock around it."""

    def __init__(self, **options: Unpack[ManagerSettings]) -> None:
        environ = environment(options, os.environ)
        loaded = settings.load(environ)
        self._log = Log(loaded.log_level)
        self._runtime = Runtime(loaded, environ, self._log)
        self._dispatcher = Dispatcher(self._runtime)
        self._encoder = envelope.Encoder(loaded.timezone)
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._broken_off = False

    def close(self) -> None:
        """Waits for the call under way, gives the cache writer up to 2 s, and closes everything. May be called again.

        A manager that is not closed loses what its cache writer has not written yet, never what PostgreSQL has. In a
        process that did not make the manager this does nothing.
        """
        if os.getpid() == self._process:
            with self._lock:
                if not self._closed:
                    self._closed = True
                    self._runtime.close()
                    self._log.flush()

    def _ask(
        self, action: str, kind: type[R], on_progress: Callable[[int, int | None], None] | None = None, **fields: object
    ) -> R:
        """The answer as a `kind`. Raises CheckpointError, and RuntimeError where the manager cannot be used."""
        request = request_of(action, fields)
        if os.getpid() != self._process:
            raise RuntimeError("this manager belongs to another process; make one after the fork")
        with self._lock:
            if self._closed:
                raise RuntimeError("this manager is closed")
            if self._broken_off:
                self._runtime.forget_call()
            self._broken_off = True  # until it has come to its end: Ctrl-C may come between any two steps of it
            if on_progress is not None:
                self._runtime.progress = lambda _action, done, total: on_progress(done, total)
            try:
                answer = self._dispatcher.serve(request)
            finally:
                self._runtime.progress = None
            self._broken_off = False
        if isinstance(answer, CheckpointError):
            raise answer
        try:
            return self._read(answer, kind)
        except Exception as error:
            raise self._dispatcher.failure(error) from error

    def _read(self, answer: dict[str, Any], kind: type[R]) -> R:
        return msgspec.json.decode(self._encoder.success(answer), type=_Answer[kind]).data  # type: ignore[valid-type]


def environment(options: ManagerSettings, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` with the options in the place of their variables. Raises TypeError for one that does not exist."""
    changed = dict(environ)
    for name, value in options.items():
        if name not in ManagerSettings.__annotations__:
            raise TypeError(f"CheckpointManager has no setting {name!r}")
        changed["DATABASE_URL" if name == "database_url" else f"CHECKPOINT_{name.upper()}"] = _written(value)
    return changed


def _written(value: Any) -> str:
    """A setting as one would write it into the environment."""
    if value is None:
        return ""
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def request_of(action: str, fields: Mapping[str, object]) -> envelope.Request | CheckpointError:
    """The request that the same line of JSON would make; a CheckpointError where there is no such line."""
    given = {name: value for name, value in fields.items() if value is not None}
    texts: dict[str, msgspec.Raw] = {}
    for name in envelope.TEXT_FIELDS:
        if name in given:
            try:
                texts[name] = _text(name, given.pop(name))
                msgspec.json.decode(texts[name], type=msgspec.Raw)
            except (msgspec.DecodeError, RecursionError) as error:
                return CheckpointError("INVALID_JSON", f"{name} is not valid JSON ({error})")
            except (TypeError, ValueError) as error:
                return CheckpointError("INVALID_JSON", f"{name} has no JSON form ({error})")
    try:
        line = msgspec.json.encode({"action": action, **given, **texts})
    except (TypeError, ValueError, RecursionError):
        return CheckpointError("INVALID_JSON", "an argument has no JSON form, such as NaN or an object of another kind")
    try:
        request = envelope.decode(line)
    except CheckpointError as error:
        return error
    if request.fields.keys() != {"action", *given, *texts}:
        return CheckpointError("INVALID_JSON", "the JSON text of an argument must be one JSON value and nothing else")
    return request


def _text(name: str, value: object) -> msgspec.Raw:
    """The JSON text of a field that stays text: bytes are it already, and so is a str where only an object will do."""
    if isinstance(value, str) and name == "state_data":
        return msgspec.Raw(value.encode())
    if isinstance(value, bytes):
        return msgspec.Raw(value)
    return msgspec.Raw(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())
