"""One worker process, spoken to as a host does: lines in, lines out, and never without a deadline."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.asked import Asked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.responses import Responses

RUNNER = Path(__file__).resolve().parents[2] / "runner.py"
PATIENCE = 60.0
CHUNK = 1 << 16


class WorkerGone(AssertionError):
    """The process ended where the test still expected something of it."""


class Worker:
    """A `python runner.py` process. Each response that it reads is held to the schemas by `responses`.

    `argv` replaces the command, `cwd` the current folder. With `stderr_read=False` nobody reads the pipe of its stderr.
    """

    def __init__(
        self,
        env: Mapping[str, str],
        responses: Responses,
        *,
        argv: Sequence[str] = (sys.executable, str(RUNNER)),
        cwd: Path | None = None,
        stderr_read: bool = True,
    ) -> None:
        self.process = subprocess.Popen(
            argv, env=dict(env), cwd=cwd, stdin=-1, stdout=-1, stderr=-1, bufsize=0, start_new_session=True
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._stdin, self._stdout, self._stderr = self.process.stdin, self.process.stdout, self.process.stderr
        os.set_blocking(self._stdin.fileno(), False)
        os.set_blocking(self._stdout.fileno(), False)
        self._responses = responses
        self._asked = Asked()
        self._received = bytearray()
        self._ended = False
        self._errors = bytearray()
        self._reader = threading.Thread(target=self._collect_errors, daemon=True)
        self.raw: list[bytes] = []
        if stderr_read:
            self._reader.start()

    @property
    def pid(self) -> int:
        """Process id."""
        return self.process.pid

    def request(self, request: Mapping[str, Any], patience: float = PATIENCE) -> dict[str, Any]:
        """Writes one line, reads one line: the response."""
        self.send(request, patience)
        return self.read_line(patience)

    def ask(self, request: Mapping[str, Any], patience: float = PATIENCE) -> dict[str, Any]:
        """The same for a request that must succeed: its data. Raises AssertionError with the answer otherwise."""
        answer = self.request(request, patience)
        assert answer["success"], f"{request} was answered with {answer}"
        data: dict[str, Any] = answer["data"]
        return data

    def send(self, request: Mapping[str, Any], patience: float = PATIENCE) -> None:
        """Writes one line and reads nothing."""
        self.send_raw(json.dumps(request, ensure_ascii=False).encode() + b"\n", patience)

    def send_raw(self, data: bytes, patience: float = PATIENCE, *, reading: bool = True) -> None:
        """Writes bytes as they are. Takes in answers meanwhile, so that neither side waits for the other for ever.

        With `reading=False` it takes nothing in, as a host does that only writes.
        """
        self._asked.feed(data)
        left = memoryview(data)
        deadline = time.monotonic() + patience
        while left:
            self._wait(deadline, writing=True, reading=reading)
            try:
                left = left[os.write(self._stdin.fileno(), left[:CHUNK]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                raise self._gone("took no more input") from None

    def read_line(self, patience: float = PATIENCE) -> dict[str, Any]:
        """The next response, checked."""
        deadline = time.monotonic() + patience
        while b"\n" not in self._received:
            if self._ended:
                raise self._gone("closed its output")
            self._wait(deadline, writing=False, reading=True)
        end = self._received.index(b"\n")
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return self._checked(line)

    def read_lines(self, count: int, patience: float = PATIENCE) -> list[dict[str, Any]]:
        """The next `count` responses."""
        return [self.read_line(patience) for _ in range(count)]

    def read_all(self, patience: float = PATIENCE) -> list[dict[str, Any]]:
        """Every response up to the end of the output."""
        deadline = time.monotonic() + patience
        while not self._ended:
            self._wait(deadline, writing=False, reading=True)
        *lines, rest = bytes(self._received).split(b"\n")
        self._received.clear()
        assert rest == b"", f"output that is no line: {rest[:1000]!r}"
        return [self._checked(line) for line in lines]

    def says_nothing(self, seconds: float = 0.3) -> bool:
        """True where no output comes for that long."""
        ready, _, _ = select.select([self._stdout], [], [], seconds)
        return not ready and not self._received

    def close_input(self) -> None:
        """The end of the input."""
        self._asked.end()
        self._stdin.close()

    def close_output(self) -> None:
        """The reader of the output goes away."""
        self._stdout.close()

    def wait(self, patience: float = PATIENCE) -> int:
        """The exit status. Waits for the end of stderr too, where that is read."""
        status = self.process.wait(patience)
        if self._reader.ident is not None:
            self._reader.join(patience)
        return status

    def finish(self) -> list[dict[str, Any]]:
        """Ends the input, reads what is still to come, and holds the process to exit status 0."""
        self.close_input()
        answers = self.read_all()
        status = self.wait()
        assert status == 0, f"exit status {status}; stderr: {self.stderr[-2000:]}"
        return answers

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Sends a signal to the process alone."""
        self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and every file of it closed. May be called again."""
        self.process.kill()
        self.process.wait()
        if self._reader.ident is not None:
            self._reader.join(PATIENCE)
        for file in (self._stdin, self._stdout, self._stderr):
            file.close()

    @property
    def stderr(self) -> str:
        """What came on stderr so far."""
        return self._errors.decode("utf-8", "replace")

    def _checked(self, line: bytes) -> dict[str, Any]:
        self.raw.append(line)
        return self._responses.check(line, self._asked.next())

    def _wait(self, deadline: float, *, writing: bool, reading: bool) -> None:
        """Until something can be written or was read. Raises TimeoutError at the deadline."""
        readable = [self._stdout] if reading and not self._ended and not self._stdout.closed else []
        left = max(0.0, deadline - time.monotonic())
        ready, ready_to_write, _ = select.select(readable, [self._stdin] if writing else [], [], left)
        if ready:
            data = self._stdout.read(1 << 20)
            self._received += data or b""
            self._ended = data == b""
        elif not ready_to_write:
            raise TimeoutError(f"nothing came from the worker in time; its stderr: {self.stderr[-2000:]}")

    def _gone(self, what: str) -> WorkerGone:
        try:
            status: object = self.wait(5)
        except subprocess.TimeoutExpired:
            status = "none, it runs"
        return WorkerGone(f"the worker {what}; exit status {status}; stderr: {self.stderr[-2000:]}")

    def _collect_errors(self) -> None:
        while data := self._stderr.read(CHUNK):
            self._errors += data
