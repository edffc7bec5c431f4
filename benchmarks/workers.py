"""The two workers of a run, ours and the bare one, and the lines they are sent."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.figure import OURS
from benchmarks.interleaved import Contestant
from benchmarks.piped import REPOSITORY, piped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.piped import Piped
    from benchmarks.servers import Server

RUNNER = [sys.executable, os.path.join(REPOSITORY, "runner.py")]
BARE_WORKER = [sys.executable, os.path.join(REPOSITORY, "benchmarks", "bare_worker.py")]
BARE = "bare worker"
OBJECTS = f"{OURS}, objects"


@contextmanager
def our_worker(server: Server, data_dir: str, **settings: str) -> Iterator[Piped]:
    """The product's worker on a server, with a data folder."""
    with piped(RUNNER, {"DATABASE_URL": server.url, "CHECKPOINT_DATA_DIR": data_dir, **settings}) as worker:
        yield worker


@contextmanager
def bare_worker(server: Server) -> Iterator[Piped]:
    """The yardstick on the same server."""
    with piped([*BARE_WORKER, server.url], {}) as worker:
        yield worker


def line(action: str, workflow_id: str, number: int, state: bytes | None = None) -> bytes:
    """A request on the step with that number."""
    head = f'{{"action":"{action}","workflow_id":"{workflow_id}","step_id":"step-{number}"'.encode()
    return head + (b"}\n" if state is None else b',"state_data":' + state + b"}\n")


def asked(worker: Piped, name: str, make: Callable[[int], bytes]) -> Contestant:
    """A worker that is sent ready lines, one at a time."""
    return Contestant(name, make, worker.ask, worker.cpu)


def asked_with_objects(worker: Piped, action: str, workflow_id: str, states: Sequence[Any] = ()) -> Contestant:
    """Our worker as a Python program uses it: the clock also runs while it writes and parses the JSON."""

    def make(number: int) -> dict[str, Any]:
        request = {"action": action, "workflow_id": workflow_id, "step_id": f"step-{number}"}
        return request | ({"state_data": states[number % len(states)]} if states else {})

    def do(request: dict[str, Any]) -> object:
        return orjson.loads(worker.ask(orjson.dumps(request, option=orjson.OPT_APPEND_NEWLINE)))

    return Contestant(OBJECTS, make, do, worker.cpu)


def flooded(worker: Piped, name: str, lines: bytes, count: int) -> Contestant:
    """A worker that finds `count` requests waiting."""
    return Contestant(name, lambda _: lines, lambda data: worker.flood(data, count), worker.cpu, operations=count)
