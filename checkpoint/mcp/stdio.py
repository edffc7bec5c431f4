"""The streams that the SDK's server is run on, over two file descriptors.

The SDK has such streams too; these keep what the other end of a pipe is promised (contract, section 1): every call read
before the end of input is answered, a line that is no message gets an error instead of silence, and neither a slow
reader nor a large message holds up the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import anyio
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import INVALID_REQUEST, JSONRPCError, JSONRPCRequest, JSONRPCResponse

from checkpoint.framing import LineSplitter
from checkpoint.mcp import wire
from checkpoint.output import Output, ReaderGone

if TYPE_CHECKING:
    from collections.abc import Hashable
    from types import TracebackType
    from typing import Self

    from mcp_types import JSONRPCMessage

CHUNK_BYTES = 256 * 1024
MOST_WAITING = 256


class Waiting:
    """What was read and is not answered yet; the thread that reads waits while it is too much."""

    def __init__(self, most_bytes: int) -> None:
        self._changed = threading.Condition()
        self._most_bytes = most_bytes
        self._sizes: dict[Hashable, list[int]] = {}  # a client may give one id twice
        self._bytes = 0
        self._count = 0

    def add(self, key: Hashable, size: int) -> None:
        """Takes one more, when there is room; alone it always has room."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._count == 0 or (self._count < MOST_WAITING and self._bytes + size <= self._most_bytes)
            )
            self._sizes.setdefault(key, []).append(size)
            self._bytes += size
            self._count += 1

    def remove(self, key: Hashable) -> None:
        """One of them is answered, or will never be."""
        with self._changed:
            sizes = self._sizes.get(key)
            if sizes:
                self._bytes -= sizes.pop()
                self._count -= 1
                if not sizes:
                    del self._sizes[key]
                self._changed.notify()

    def __bool__(self) -> bool:
        return self._count > 0


class Stdio:
    """Both streams: `reading` gives the SDK its messages, and this object is the stream that it writes to.

    `reading` ends when the input has ended, or `stop` was called, and nothing that was read waits for its answer.
    """

    def __init__(self, requests: int, answers: int, most_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._requests = requests
        self._most_bytes = most_bytes
        self._output = Output(answers)
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="checkpoint-output")
        self._waiting = Waiting(most_bytes)
        self._over = False
        self._refusing: set[asyncio.Task[None]] = set()
        self._arrivals, self.reading = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        threading.Thread(target=self._read, name="checkpoint-input", daemon=True).start()

    @property
    def stuck_seconds(self) -> float:
        """For how long the reader has taken nothing of what is being written; 0 where nothing is."""
        return self._output.stuck_seconds

    def stop(self) -> None:
        """The input counts as ended; what comes now is dropped without an answer."""
        self._over = True
        self._end_if_settled()

    async def send(self, item: SessionMessage, /) -> None:
        """Writes one message; it is on its way to the reader when this returns."""
        message = item.message
        try:
            await self._write(message)
        finally:
            if isinstance(message, JSONRPCResponse | JSONRPCError):
                self._settle(message.id)

    async def aclose(self) -> None:
        """Nothing more will be written."""
        await self._loop.run_in_executor(None, self._writer.shutdown)

    async def __aenter__(self) -> Self:
        """The stream itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _write(self, message: JSONRPCMessage) -> None:
        try:
            await self._loop.run_in_executor(
                self._writer, lambda: self._output.put(wire.encode(message), more_follow=False)
            )
        except ReaderGone:
            self.stop()
            self._arrivals.close()
            raise anyio.BrokenResourceError from None

    def _read(self) -> None:
        splitter = LineSplitter(self._most_bytes)
        chunk = b"-"
        with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
            while chunk:
                try:
                    chunk = os.read(self._requests, CHUNK_BYTES)
                except OSError:
                    chunk = b""
                if chunk:
                    splitter.feed(chunk)
                else:
                    splitter.end()
                while splitter.lines:
                    self._take(splitter.lines.popleft())
            self._loop.call_soon_threadsafe(self.stop)

    def _take(self, line: bytes | None) -> None:
        try:
            if line is None:
                limit = f"CHECKPOINT_MAX_REQUEST_BYTES ({self._most_bytes})"
                raise wire.Malformed(INVALID_REQUEST, f"the line is longer than {limit}; split the state")
            message, arguments = wire.decode(line)
        except wire.Malformed as malformed:
            self._waiting.add(malformed, 0)
            self._loop.call_soon_threadsafe(self._refuse_later, malformed)
            return
        metadata = None
        if isinstance(message, JSONRPCRequest):
            message_id = message.id
            self._waiting.add(message_id, len(arguments))

            async def unanswered() -> None:
                self._settle(message_id)

            metadata = ServerMessageMetadata(request_context=arguments, on_request_unanswered=unanswered)
        self._loop.call_soon_threadsafe(self._arrive, SessionMessage(message, metadata))

    def _arrive(self, item: SessionMessage) -> None:
        if not self._over:
            self._arrivals.send_nowait(item)
        elif isinstance(item.message, JSONRPCRequest):
            self._settle(item.message.id)

    def _refuse_later(self, malformed: wire.Malformed) -> None:
        task = self._loop.create_task(self._refuse(malformed))
        self._refusing.add(task)
        task.add_done_callback(self._refusing.discard)

    async def _refuse(self, malformed: wire.Malformed) -> None:
        try:
            with contextlib.suppress(anyio.BrokenResourceError):
                await self._write(malformed.error)
        finally:
            self._settle(malformed)

    def _settle(self, key: Hashable) -> None:
        self._waiting.remove(key)
        self._end_if_settled()

    def _end_if_settled(self) -> None:
        if self._over and not self._waiting:
            self._arrivals.close()
