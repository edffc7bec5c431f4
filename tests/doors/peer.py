"""A `runner.py --mcp` process spoken to line by line, for what no well-behaved client sends."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from queue import Empty, Queue
from typing import IO, TYPE_CHECKING, Any

from tests.support.environment import worker_environment
from tests.support.worker import PATIENCE, RUNNER

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping

COMMAND = (sys.executable, str(RUNNER), "--mcp")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "hello",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int | str, tool: str, arguments: Mapping[str, Any], *, enveloped: bool = False) -> dict[str, Any]:
    """A tools/call message; `enveloped` as the protocol of 2026 has it."""
    params: dict[str, Any] = {"name": tool, "arguments": dict(arguments)}
    if enveloped:
        params["_meta"] = ENVELOPE
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def lines(*messages: Mapping[str, Any]) -> bytes:
    """Messages as they go over the wire."""
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


class Peer:
    """The process. Its stdin is a pipe, or the file `stdin`; `reading` and `stderr_read` tell whether its pipes are read."""

    def __init__(
        self,
        settings: Mapping[str, str | None],
        *,
        stdin: IO[bytes] | int = subprocess.PIPE,
        reading: bool = True,
        stderr_read: bool = True,
    ) -> None:
        self.process = subprocess.Popen(
            COMMAND, env=worker_environment(settings), stdin=stdin, stdout=-1, stderr=-1, start_new_session=True
        )
        self._lines: Queue[bytes | None] = Queue()
        self._errors: list[bytes] = []
        self._readers = [threading.Thread(target=self._read, daemon=True)] if reading else []
        if stderr_read:
            self._readers.append(threading.Thread(target=self._read_errors, daemon=True))
        for reader in self._readers:
            reader.start()

    def begin(self) -> None:
        """The handshake of 2025."""
        self.send(lines(INITIALIZE, INITIALIZED))
        assert self.read()["id"] == "hello"

    def send(self, data: bytes) -> None:
        """Bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """The next message."""
        line = self._next()
        assert line is not None, f"the server closed its output; its stderr: {self.stderr}"
        message: dict[str, Any] = json.loads(line)
        return message

    def read_all(self) -> list[dict[str, Any]]:
        """Every message up to the end of the output."""
        return [json.loads(line) for line in self.read_all_lines()]

    def read_all_lines(self) -> list[bytes]:
        """The same as the lines that came."""
        return list(iter(self._next, None))

    def ignores_a_ping(self, seconds: float = 0.3) -> bool:
        """True where a ping is not answered for that long."""
        self.send(lines({"jsonrpc": "2.0", "id": "ignored?", "method": "ping"}))
        try:
            return self._lines.get(timeout=seconds) is None
        except Empty:
            return True

    def end_input(self) -> None:
        """The end of the input."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def signal(self, number: signal.Signals) -> None:
        """Sends a signal to the process alone."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """The exit status; what came on stderr is whole then, where it is read."""
        status = self.process.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return status

    def kill(self) -> None:
        """SIGKILL, and every file of it closed. May be called again."""
        self.process.kill()
        self.process.wait()
        for file in (self.process.stdin, self.process.stdout, self.process.stderr):
            if file is not None:
                file.close()

    @property
    def stderr(self) -> str:
        """What came on stderr so far."""
        return b"".join(self._errors).decode("utf-8", "replace")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _next(self) -> bytes | None:
        try:
            return self._lines.get(timeout=PATIENCE)
        except Empty:
            raise TimeoutError(f"nothing came from the server in time; its stderr: {self.stderr}") from None

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self._errors.extend(self.process.stderr)
