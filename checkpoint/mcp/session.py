"""One session of the MCP door, from the first message to the end (contract, section 1, ending)."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from typing import TYPE_CHECKING

from checkpoint.log import Log
from checkpoint.mcp.calls import Calls
from checkpoint.mcp.server import build
from checkpoint.mcp.stdio import Stdio
from checkpoint.runtime import Runtime
from checkpoint.settings import LOG_LEVELS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checkpoint.settings import Settings

GIVE_UP_SECONDS = 5.0
LOOK_AGAIN_SECONDS = 1.0


def run(settings: Settings, environ: Mapping[str, str], requests: int, answers: int) -> None:
    """Serves one client on two file descriptors."""
    log = Log(settings.log_level)
    logging.getLogger().addHandler(_ToLog(log))
    asyncio.run(_serve(Runtime(settings, environ, log), requests, answers))
    log.flush()


async def _serve(runtime: Runtime, requests: int, answers: int) -> None:
    loop = asyncio.get_running_loop()
    calls = Calls(runtime)
    stdio = Stdio(requests, answers, runtime.settings.max_request_bytes)
    stopping = False

    def on_signal() -> None:
        nonlocal stopping
        if stopping:
            os._exit(0)
        stopping = True
        stdio.stop()
        loop.call_later(GIVE_UP_SECONDS, give_up)

    def give_up() -> None:
        if stdio.stuck_seconds >= GIVE_UP_SECONDS:  # nobody takes the answers
            os._exit(0)
        loop.call_later(LOOK_AGAIN_SECONDS, give_up)

    def wake(_number: int, _frame: object) -> None:
        calls.stop()
        try:
            loop.call_soon_threadsafe(on_signal)
        except RuntimeError:  # the loop has ended, and so has everything that could be finished
            os._exit(0)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, wake)
    server = build(calls)
    try:
        await server.run(stdio.reading, stdio, server.create_initialization_options())
    finally:
        await loop.run_in_executor(None, calls.close)


class _ToLog(logging.Handler):
    """What the SDK and the event loop log goes the way of all log lines, which never holds up an answer.

    Of an exception only the kind is told: its text may repeat what was sent.
    """

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Queues one line."""
        level = record.levelname if record.levelname in LOG_LEVELS else "ERROR"
        kind = record.exc_info[0] if record.exc_info else None
        self._log(level, "mcp", message=record.getMessage(), exception=kind.__name__ if kind else None)
