"""The start of the MCP door: `python runner.py --mcp`, or `checkpoint-mcp`."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE = "usage: checkpoint-mcp  (MCP over stdin and stdout, for an MCP host; settings come from the environment)"


def main() -> int:
    """The console script: no arguments, the settings from the environment."""
    if sys.argv[1:]:
        sys.stderr.write(USAGE + "\n")
        return 2
    return serve(os.environ)


def serve(environ: Mapping[str, str]) -> int:
    """Serves MCP on stdin and stdout until the input ends or a signal comes; the exit status (contract, section 1)."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end_at_once)  # until the session takes them over: nothing has been read before
    from checkpoint import settings
    from checkpoint.errors import SettingsError
    from checkpoint.standard_streams import take_standard_streams

    try:
        loaded = settings.load(environ)
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    requests, answers = take_standard_streams()
    try:
        from checkpoint.mcp.session import run
    except ImportError as error:
        install = f"{sys.executable} -m pip install 'mcp>=2,<3'"
        sys.stderr.write(f"the MCP server needs the package mcp, version 2 ({error}); install it with: {install}\n")
        return 2
    run(loaded, environ, requests, answers)
    return 0


def _end_at_once(_number: int, _frame: object) -> None:
    os._exit(0)
