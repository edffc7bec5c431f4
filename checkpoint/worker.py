"""The JSON-lines door: bytes in, lines out, signals, the end of input (contract, section 1)."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from checkpoint import envelope, settings
from checkpoint.adaptive_wait import AdaptiveWait
from checkpoint.dispatch import Dispatcher
from checkpoint.errors import CheckpointError, SettingsError
from checkpoint.framing import LineSplitter
from checkpoint.log import Log
from checkpoint.output import Output, ReaderGone
from checkpoint.runtime import Runtime
from checkpoint.standard_streams import take_standard_streams

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PIPE_BYTES = 1024 * 1024  # what may wait in a pipe, where its size can be set: more requests go together
BATCH_REQUESTS = 256
BATCH_BYTES = 1024 * 1024
AWAKE_SECONDS = 0.0002  # what a caller that asks again at once may need for that
GIVE_UP_SECONDS = 5.0
USAGE = "usage: python runner.py [--mcp] < requests.jsonl > answers.jsonl  (JSON lines, or MCP; see SKILL.md)"


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Serves stdin until its end or a signal; the exit status (contract, section 1). `--mcp` opens the other door."""
    if list(arguments) == ["--mcp"]:
        from checkpoint.mcp.main import serve

        return serve(environ)
    if arguments:
        sys.stderr.write(USAGE + "\n")
        return 2
    try:
        loaded = settings.load(environ)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    requests, answers = take_standard_streams()
    log = Log(loaded.log_level)
    runtime = Runtime(loaded, environ, log)
    if os.isatty(2):
        from checkpoint.progress import on_terminal

        runtime.progress = on_terminal()
    worker = Worker(runtime, requests, answers)
    try:
        worker.run()
    finally:
        runtime.close()
        log.flush()
    return 0


def console() -> int:
    """The console script: what `runner.py` is in a checkout, where the package is installed."""
    return main(sys.argv[1:], os.environ)


class Worker:
    """Serves one stream of requests on one stream of answers."""

    def __init__(self, runtime: Runtime, requests: int, answers: int) -> None:
        self._runtime = runtime
        self._requests = requests
        self._output = Output(answers)
        self._splitter = LineSplitter(runtime.settings.max_request_bytes)
        self._dispatcher = Dispatcher(runtime)
        self._encoder = envelope.Encoder(runtime.settings.timezone)
        self._buffer = bytearray(PIPE_BYTES)  # kept: memory of that size is costly to get for every line
        self._stopping = False
        self._wake, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        self._wait = AdaptiveWait(AWAKE_SECONDS)
        self._poll = select.poll()
        self._is_ready = partial(self._poll.poll, 0)
        for descriptor in (requests, self._wake):
            self._poll.register(descriptor, select.POLLIN)
        for descriptor in (requests, answers):
            with contextlib.suppress(OSError, AttributeError):  # not a pipe, not this system, or not this size
                fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, PIPE_BYTES)

    def run(self) -> None:
        """Answers every request until the end of input, a signal, or the loss of the reader."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_alarm)
        try:
            while self._read():
                self._serve_waiting()
            self._output.flush()
        except ReaderGone:
            return

    def _serve_waiting(self) -> None:
        """Answers what waits, in order; neighbours of one action that goes together are served together."""
        lines = self._splitter.lines
        following = None
        while (lines or following is not None) and not self._stopping:
            request = following or self._decode(lines.popleft())
            following = None
            if lines and (action := self._dispatcher.goes_together(request)) is not None:
                batch, following = self._take_batch(request, action)
                encoded = b"".join(map(self._encode, self._dispatcher.serve_together(batch)))
            else:
                encoded = self._encode(self._dispatcher.serve(request))
            self._output.put(encoded, more_follow=bool(lines) or following is not None)

    def _take_batch(self, first: Any, action: str) -> tuple[list[Any], envelope.Request | CheckpointError | None]:
        """`first` and the requests after it that go together with it, and the one after those if it was looked at."""
        lines = self._splitter.lines
        batch = [first]
        size = 0
        while lines and len(batch) < BATCH_REQUESTS and size < BATCH_BYTES:
            size += len(lines[0] or b"")
            request = self._decode(lines.popleft())
            if isinstance(request, CheckpointError) or request.fields.get("action") != action:
                return batch, request
            batch.append(request)
        return batch, None

    def _read(self) -> bool:
        """Waits for bytes; False when no request will come or be begun any more."""
        if self._stopping or self._requests < 0:
            return False
        ready = dict(self._wait.until(self._is_ready, self._poll.poll))
        if self._stopping or self._requests not in ready:
            return not self._stopping
        try:
            size = os.readv(self._requests, [self._buffer])
        except OSError:
            size = 0
        if size:
            self._splitter.feed(bytes(memoryview(self._buffer)[:size]))
        else:
            self._splitter.end()
            os.close(self._requests)
            self._requests = -1
        return True

    def _decode(self, line: bytes | None) -> envelope.Request | CheckpointError:
        if line is None:
            limit = self._runtime.settings.max_request_bytes
            return CheckpointError(
                "REQUEST_TOO_LARGE", f"the line is longer than CHECKPOINT_MAX_REQUEST_BYTES ({limit}); split the state"
            )
        try:
            return envelope.decode(line)
        except Exception as error:
            return self._dispatcher.failure(error)

    def _encode(self, answer: dict[str, Any] | CheckpointError) -> bytes:
        if not isinstance(answer, CheckpointError):
            try:
                return self._encoder.success(answer)
            except Exception as error:
                answer = self._dispatcher.failure(error)
        return self._encoder.failure(answer)

    def _on_signal(self, _number: int, _frame: object) -> None:
        if self._stopping:
            os._exit(0)
        self._stopping = True
        signal.setitimer(signal.ITIMER_REAL, GIVE_UP_SECONDS, 1.0)

    def _on_alarm(self, _number: int, _frame: object) -> None:
        if self._output.writing:  # nobody takes the answers
            os._exit(0)
