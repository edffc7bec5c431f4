"""A process that answers lines with lines, and what it costs: the door through which both workers are measured."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SUCCESS = b'{"success":true,'
CHUNK = 1024 * 1024
_CPU_OF_PROCESS = 2  # the kernel's clock of a process's threads together
FOREIGN = ("CHECKPOINT_", "DATABASE_URL", "PG", "PYTHON")


class Refused(Exception):
    """An answer was not a success; the message holds its beginning."""


def clean_environment() -> dict[str, str]:
    """The environment without what would change how a worker or Python behaves."""
    return {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}


class Piped:
    """A process spoken to through its stdin and stdout; its stderr goes where ours goes."""

    def __init__(self, argv: list[str], settings: Mapping[str, str]) -> None:
        environment = clean_environment() | dict(settings)
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin.fileno(), self._process.stdout.fileno()

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def ask(self, line: bytes) -> bytes:
        """Writes one line, reads its answer, which has to be a success."""
        self._write(line)
        answer = os.read(self._output, CHUNK)
        if not answer.endswith(b"\n"):
            parts = [answer]
            while not parts[-1].endswith(b"\n"):
                parts.append(self._read())
            answer = b"".join(parts)
        if not answer.startswith(SUCCESS):
            raise Refused(answer[:300].decode("utf-8", "replace"))
        return answer

    def flood(self, lines: bytes, count: int) -> float:
        """Writes `count` lines as fast as they are taken and reads meanwhile; the seconds until all are answered."""
        parts: list[bytes] = []
        writer = threading.Thread(target=self._write, args=(lines,), daemon=True)
        left = count
        started = time.perf_counter()
        writer.start()
        while left > 0:
            parts.append(self._read())
            left -= parts[-1].count(b"\n")
        seconds = time.perf_counter() - started
        writer.join()
        answers = b"".join(parts)
        if answers.count(SUCCESS) != count:
            bad = next(line for line in answers.splitlines() if not line.startswith(SUCCESS))
            raise Refused(bad[:300].decode("utf-8", "replace"))
        return seconds

    def cpu(self) -> float:
        """Seconds of processor time that its threads have used so far."""
        return time.clock_gettime((~self.pid << 3) | _CPU_OF_PROCESS)

    def close(self) -> None:
        """Ends its input and waits for its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._input, left[:CHUNK]) :]

    def _read(self) -> bytes:
        data = os.read(self._output, CHUNK)
        if not data:
            raise Refused(f"the process ended with status {self._process.wait()}")
        return data


@contextmanager
def piped(argv: list[str], settings: Mapping[str, str]) -> Iterator[Piped]:
    """The process for the length of the block."""
    process = Piped(argv, settings)
    try:
        yield process
    finally:
        process.close()
