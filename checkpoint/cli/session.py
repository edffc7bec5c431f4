"""The requests of one command, on one runtime, by the way that all doors share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec

from checkpoint import envelope, settings
from checkpoint.dispatch import Dispatcher
from checkpoint.errors import CheckpointError
from checkpoint.in_process import request_of
from checkpoint.log import Log
from checkpoint.results import Result
from checkpoint.runtime import Runtime
from checkpoint.settings import LOG_LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint.progress import Progress

R = TypeVar("R", bound=Result)


class Answer(NamedTuple, Generic[R]):
    """What came back, and the envelope that says it, its line end included."""

    line: bytes
    result: R | CheckpointError


class _Envelope(msgspec.Struct, Generic[R]):
    data: R


class Session:
    """Raises SettingsError for a setting that cannot be used."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.settings = settings.load(environ)
        self._log = _Log(self.settings.log_level if environ.get("CHECKPOINT_LOG_LEVEL") else LOG_LEVELS["CRITICAL"])
        self._runtime = Runtime(self.settings, environ, self._log)
        self._dispatcher = Dispatcher(self._runtime)
        self._encoder = envelope.Encoder(self.settings.timezone)

    def ask(self, action: str, fields: Mapping[str, object], kind: type[R], progress: Progress | None) -> Answer[R]:
        """The answer to one request, its data read as `kind`."""
        self._runtime.progress = progress
        answer = self._dispatcher.serve(request_of(action, fields))
        if not isinstance(answer, CheckpointError):
            try:
                line = self._encoder.success(answer)
                read = msgspec.json.decode(line, type=_Envelope[kind])  # type: ignore[valid-type]
                return Answer(line, read.data)
            except Exception as error:
                answer = self._dispatcher.failure(error)
        return Answer(self._encoder.failure(answer), answer)

    def refusal(self, action: str, fields: Mapping[str, object]) -> Answer[Any] | None:
        """The answer to a request that is wrong in itself, whatever is stored; None for one that can be served."""
        prepared = self._dispatcher.prepare(request_of(action, fields))
        if isinstance(prepared, CheckpointError):
            return Answer(self._encoder.failure(prepared), prepared)
        return None

    def close(self) -> None:
        """The cache gets up to 2 s to take what is queued."""
        self._runtime.close()
        self._log.flush()


class _Log(Log):
    """Events are for those who collect them, and are written where CHECKPOINT_LOG_LEVEL says so; tracebacks always."""

    def traceback(self, event: str) -> None:
        """Writes the exception being handled, as one sees it from any program."""
        del event
        from traceback import print_exc

        print_exc()
