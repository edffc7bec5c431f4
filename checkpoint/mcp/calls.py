"""Tool calls become requests, served one at a time in the order of their arrival, beside the event loop."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from checkpoint import envelope
from checkpoint.dispatch import Dispatcher
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from checkpoint.progress import Progress
    from checkpoint.runtime import Runtime


class NotBegun(Exception):
    """The server is ending, and this call has not been carried out."""


class Answer(NamedTuple):
    """An envelope as its JSON text, and whether it is a success (contract, section 2)."""

    text: str
    success: bool


class Calls:
    """One thread with one runtime: concurrent calls wait for each other, and the loop goes on meanwhile."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._dispatcher = Dispatcher(runtime)
        self._encoder = envelope.Encoder(runtime.settings.timezone)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-call")
        self._stopped = False

    async def serve(self, action: str, arguments: bytes, progress: Progress | None) -> Answer:
        """The answer. Raises NotBegun after `stop`. A call cancelled before its turn is not carried out."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._serve, action, arguments, progress)

    def stop(self) -> None:
        """From now on no call is begun; the one under way is finished."""
        self._stopped = True

    def close(self) -> None:
        """Waits for the call under way; the cache gets up to 2 s to take what is queued."""
        self._thread.shutdown(cancel_futures=True)
        self._runtime.close()

    def _serve(self, action: str, arguments: bytes, progress: Progress | None) -> Answer:
        if self._stopped:
            raise NotBegun
        request = self._request(action, arguments)
        self._runtime.progress = progress
        answer = self._dispatcher.serve(request)
        self._runtime.progress = None
        if not isinstance(answer, CheckpointError):
            try:
                return Answer(self._encoder.success(answer).decode().rstrip(), success=True)
            except Exception as error:
                answer = self._dispatcher.failure(error)
        return Answer(self._encoder.failure(answer).decode().rstrip(), success=False)

    def _request(self, action: str, arguments: bytes) -> envelope.Request | CheckpointError:
        """The request that a line of JSON with these fields and this action would make."""
        try:
            request = envelope.decode(arguments)
        except Exception as error:
            return self._dispatcher.failure(error)
        return _with_action(request, action)


def _with_action(request: envelope.Request, action: str) -> envelope.Request | CheckpointError:
    if "action" in request.fields:
        return CheckpointError("INVALID_ARG", "unknown field 'action'; the tool's name says what to do")
    request.fields["action"] = action
    return request
