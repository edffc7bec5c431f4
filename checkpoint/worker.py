"""The JSON-lines door: bytes in, lines out, signals, the end of input (contract, section 1)."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import signal
import sys
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any

from checkpoint import envelope, settings
from checkpoint.adaptive_wait import AdaptiveWait
from checkpoint.dispatch import Call, Dispatcher
from checkpoint.errors import CheckpointError, SettingsError
from checkpoint.framing import LineSplitter
from checkpoint.log import Log
from checkpoint.meanwhile import Meanwhile
from checkpoint.output import Output, ReaderGone
from checkpoint.runtime import Runtime
from checkpoint.standard_streams import take_standard_streams

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from checkpoint.actions import Answer

PIPE_BYTES = 1024 * 1024  # what may wait in a pipe, where its size can be set: more requests go together
BATCH_REQUESTS = 256
BATCH_BYTES = 1024 * 1024
AWAKE_SECONDS = 0.0002  # what a caller that asks again at once may need for that
GIVE_UP_SECONDS = 5.0
LOOK_SECONDS = 1.0
WAKE_BYTES = 4096
GARBAGE_OBJECTS = 10_000  # between two collections; a batch makes thousands that go without one
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
        self._ahead: deque[Call | CheckpointError] = deque()  # prepared while a batch was served
        self._unfinished: Callable[[], list[Answer | None]] | None = None  # makes the answers of the last batch
        self._served_last = ""
        self._stopping = False
        self._stopping_since = 0.0
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
        gc.set_threshold(GARBAGE_OBJECTS)
        try:
            while self._wait_for_input():
                self._serve_waiting()
            self._finish()
            self._output.flush()
        except ReaderGone:
            return

    def _serve_waiting(self) -> None:
        """Serves what waits, in order; neighbours of one action that goes together are served together."""
        while not self._stopping and (call := self._next()) is not None:
            batch = self._batch_of(call)
            if len(batch) > 1:
                self._serve_together(batch)
            else:
                self._finish()
                self._output.put(self._encode(self._dispatcher.serve_call(call)), more_follow=self._more_wait)

    def _serve_together(self, batch: Sequence[Call]) -> None:
        if batch[0].name != self._served_last:
            self._finish()
        self._output.make_room()
        self._served_last = batch[0].name
        together = self._dispatcher.serve_together(batch, Meanwhile(self._meanwhile))
        if together.complete:
            self._unfinished = together.make
            return
        answers = together.make()
        for place, call in enumerate(batch):
            answer = answers[place]
            if answer is None:  # also after a signal: what stands behind it in the batch is done
                answer = self._dispatcher.serve_call(call)
            self._output.put(self._encode(answer), more_follow=place + 1 < len(batch) or self._more_wait)

    def _meanwhile(self) -> None:
        """While the database works on a batch: the answers of the one before it, and what comes after it.

        It does not wait for the caller to take anything: the database would take that for its own client's silence.
        """
        if (answers := self._unfinished_answers()) is not None:
            with contextlib.suppress(ReaderGone):  # told again by the next answer
                self._output.put_without_waiting(answers)
        if len(self._splitter.lines) < BATCH_REQUESTS and self._input_is_there():
            self._take_input()
        size = 0
        while self._splitter.lines and len(self._ahead) < BATCH_REQUESTS and size < BATCH_BYTES:
            size += len(self._splitter.lines[0] or b"")
            self._ahead.append(self._prepare_line())

    def _finish(self) -> None:
        """Makes the answers of the last batch, if they are not made yet, and writes them unless more follow at once."""
        if (answers := self._unfinished_answers()) is not None:
            self._output.put(answers, more_follow=self._more_wait)

    def _unfinished_answers(self) -> bytes | None:
        unfinished, self._unfinished = self._unfinished, None
        return None if unfinished is None else b"".join(self._encode(answer) for answer in unfinished() if answer)

    def _batch_of(self, first: Call | CheckpointError) -> list[Call]:
        """`first` and the calls after it that go together with it; none for an error and a call that goes alone."""
        batch: list[Call] = []
        size = 0
        taken: set[Any] = set()
        call: Call | CheckpointError | None = first
        while isinstance(call, Call) and (not batch or call.name == batch[0].name) and call.joins(taken):
            batch.append(call)
            size += call.size
            if len(batch) == BATCH_REQUESTS or size >= BATCH_BYTES:
                return batch
            call = self._next()
        if call is not None and call is not first:
            self._ahead.appendleft(call)
        return batch

    def _next(self) -> Call | CheckpointError | None:
        if self._ahead:
            return self._ahead.popleft()
        return self._prepare_line() if self._splitter.lines else None

    @property
    def _more_wait(self) -> bool:
        return bool(self._ahead or self._splitter.lines)

    def _prepare_line(self) -> Call | CheckpointError:
        return self._dispatcher.prepare(self._decode(self._splitter.lines.popleft()))

    def _wait_for_input(self) -> bool:
        """Waits for bytes; False when no request will come or be begun any more."""
        if self._stopping or self._requests < 0:
            return False
        if self._unfinished is not None and not self._input_is_there():
            self._finish()
        ready = dict(self._wait.until(self._is_ready, self._poll.poll))
        if self._wake in ready:
            os.read(self._wake, WAKE_BYTES)
        if not self._stopping and self._requests in ready:
            self._take_input()
            if not self._splitter.lines:  # a part of a line, or lines with nothing in them: none may follow for long
                self._finish()
        return not self._stopping

    def _input_is_there(self) -> bool:
        return self._requests in dict(self._is_ready())

    def _take_input(self) -> None:
        try:
            size = os.readv(self._requests, [self._buffer])
        except OSError:
            size = 0
        if size:
            self._splitter.feed(bytes(memoryview(self._buffer)[:size]))
        else:
            self._splitter.end()
            self._poll.unregister(self._requests)
            os.close(self._requests)
            self._requests = -1

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

    def _encode(self, answer: Answer) -> bytes:
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
        self._stopping_since = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, LOOK_SECONDS, LOOK_SECONDS)

    def _on_alarm(self, _number: int, _frame: object) -> None:
        stopping_seconds = time.monotonic() - self._stopping_since
        if self._stopping and min(stopping_seconds, self._output.stuck_seconds) >= GIVE_UP_SECONDS:
            os._exit(0)  # nobody takes the answers
