"""The doors, each reduced to one question: what it answers to this action with these fields."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from checkpoint import CheckpointError, CheckpointManager
from tests.doors.client import session
from tests.doors.command_line import command_line
from tests.support.environment import worker_environment
from tests.support.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from tests.support.responses import Responses

    Envelope = dict[str, Any]


class Door(Protocol):
    """An open door."""

    def __call__(self, action: str, fields: Mapping[str, Any], /) -> Envelope | None:
        """The envelope that comes back, or what a door without envelopes tells of it: `data` and `code`.

        None where the request cannot be made at this door.
        """


@contextmanager
def json_lines(settings: Mapping[str, str | None], responses: Responses, _folder: Path) -> Iterator[Door]:
    """Requests through `python runner.py`."""
    worker = Worker(worker_environment(settings), responses)
    try:
        yield lambda action, fields: worker.request({"action": action, **fields})
    finally:
        worker.kill()


@contextmanager
def mcp(settings: Mapping[str, str | None], responses: Responses, folder: Path) -> Iterator[Door]:
    """Tool calls through `python runner.py --mcp`."""
    with session(settings, responses, folder) as client:
        yield client.ask


@contextmanager
def python(settings: Mapping[str, str | None], _responses: Responses, _folder: Path) -> Iterator[Door]:
    """Method calls on a CheckpointManager."""
    options: Any = {name.lower().removeprefix("checkpoint_"): value for name, value in settings.items()}
    with CheckpointManager(**options) as manager:

        def ask(action: str, fields: Mapping[str, Any]) -> Envelope:
            try:
                result = getattr(manager, action)(**fields)
            except CheckpointError as error:
                return {"success": False, "data": None, "error": error.message, "code": error.code}
            return {"success": True, "data": json.loads(msgspec.json.encode(result)), "error": None, "code": None}

        yield ask


DOORS: dict[str, Callable[[Mapping[str, str | None], Responses, Path], AbstractContextManager[Door]]] = {
    "JSON lines": json_lines,
    "MCP": mcp,
    "Python": python,
    "command line": command_line,
}

PROCESS_A_REQUEST = frozenset({"command line"})
"""Doors where what one process has counted is of one request."""

_VOLATILE = re.compile(r"(_at|_sec|_ms|_path|_bytes|cursor|_token|output|path)\Z")


def comparable(envelope: Envelope, *, counters: bool) -> Envelope:
    """The envelope with its volatile values blanked, and without what is null, which the Python door cannot leave out.

    Without `counters` what the process has counted is left out too.
    """
    if not counters and isinstance(envelope["data"], dict):
        envelope = {**envelope, "data": {**envelope["data"], "counters": None}}
    return {name: _comparable(name, value) for name, value in envelope.items() if value is not None}


def _comparable(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _comparable(key, each) for key, each in value.items() if each is not None}
    if isinstance(value, list):
        return [_comparable(name, each) for each in value]
    # `older_than_sec` and its like are numbers that the caller sent; what is measured is a float or a text.
    return "<volatile>" if _VOLATILE.search(name) and not isinstance(value, bool) else value
