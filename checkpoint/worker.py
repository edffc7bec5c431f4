"""The JSON-lines door: bytes in, lines out, signals, the end of input (contract, section 1)."""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Any

from checkpoint import envelope, settings
from checkpoint.dispatch import Dispatcher
from checkpoint.errors import CheckpointError, SettingsError
from checkpoint.framing import LineSplitter
from checkpoint.log import Log
from checkpoint.output import Output, ReaderGone
from checkpoint.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

READ_BYTES = 256 * 1024
GIVE_UP_SECONDS = 5.0
USAGE = "usage: python runner.py < requests.jsonl > answers.jsonl  (JSON lines on stdin and stdout; see SKILL.md)"


def main(arguments: Sequence[str], environ: Mapping[str, str]) -> int:
    """Serves stdin until its end or a signal; the exit status (contract, section 1)."""
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
    worker = Worker(runtime, requests, answers)
    try:
        worker.run()
    finally:
        runtime.close()
        log.flush()
    return 0


def take_standard_streams() -> tuple[int, int]:
    """Private descriptors for the wire. What was 1 now leads to stderr, so that no print of a library reaches it."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.dup2(null, descriptor)
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return requests, answers


class Worker:
    """Serves one stream of requests on one stream of answers."""

    def __init__(self, runtime: Runtime, requests: int, answers: int) -> None:
        self._runtime = runtime
        self._requests = requests
        self._output = Output(answers)
        self._splitter = LineSplitter(runtime.settings.max_request_bytes)
        self._dispatcher = Dispatcher(runtime)
        self._encoder = envelope.Encoder(runtime.settings.timezone)
        self._stopping = False
        self._wake, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)

    def run(self) -> None:
        """Answers every request until the end of input, a signal, or the loss of the reader."""
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        signal.signal(signal.SIGALRM, self._on_alarm)
        lines = self._splitter.lines
        try:
            while self._read():
                while lines and not self._stopping:
                    self._output.put(self._answer(lines.popleft()), more_follow=bool(lines))
            self._output.flush()
        except ReaderGone:
            return

    def _read(self) -> bool:
        """Waits for bytes; False when no request will come or be begun any more."""
        if self._stopping or self._requests < 0:
            return False
        ready, _, _ = select.select([self._requests, self._wake], [], [])
        if self._stopping or self._requests not in ready:
            return not self._stopping
        try:
            chunk = os.read(self._requests, READ_BYTES)
        except OSError:
            chunk = b""
        if chunk:
            self._splitter.feed(chunk)
        else:
            self._splitter.end()
            os.close(self._requests)
            self._requests = -1
        return True

    def _answer(self, line: bytes | None) -> bytes:
        counters = self._runtime.counters
        counters.requests += 1
        try:
            return self._encoder.success(self._serve(line))
        except CheckpointError as error:
            counters.failed(error.code)
            return self._encoder.failure(error)
        except Exception:  # a fault of this program must not end the stream of answers
            self._runtime.log.exception("a request failed in a way that is not foreseen")
            counters.failed("INTERNAL_ERROR")
            fault = CheckpointError("INTERNAL_ERROR", "a fault of checkpoint-manager; its traceback is on stderr")
            return self._encoder.failure(fault)

    def _serve(self, line: bytes | None) -> dict[str, Any]:
        if line is None:
            limit = self._runtime.settings.max_request_bytes
            raise CheckpointError(
                "REQUEST_TOO_LARGE", f"the line is longer than CHECKPOINT_MAX_REQUEST_BYTES ({limit}); split the state"
            )
        return self._dispatcher.serve(envelope.decode(line))

    def _on_signal(self, _number: int, _frame: object) -> None:
        if self._stopping:
            os._exit(0)
        self._stopping = True
        signal.setitimer(signal.ITIMER_REAL, GIVE_UP_SECONDS, 1.0)

    def _on_alarm(self, _number: int, _frame: object) -> None:
        if self._output.writing:  # nobody takes the answers
            os._exit(0)
