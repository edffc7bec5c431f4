"""LangGraph's savers as yardsticks: the same states, from and to Python objects, in this process (extra `bench`)."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.interleaved import Contestant

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.servers import Server

POSTGRES_SAVER, SQLITE_SAVER = "LangGraph PostgresSaver", "LangGraph SqliteSaver"
NOT_INSTALLED = (
    "The rows of LangGraph are left out: langgraph-checkpoint-postgres and langgraph-checkpoint-sqlite are not "
    "installed (`make bench` installs them, extra `bench`)."
)


def installed() -> bool:
    """Whether both savers are there."""
    try:
        return all(find_spec(f"langgraph.checkpoint.{name}") is not None for name in ("postgres", "sqlite"))
    except ModuleNotFoundError:
        return False


class Put(NamedTuple):
    """The arguments of a saver's `put`."""

    config: dict[str, Any]
    checkpoint: dict[str, Any]
    metadata: dict[str, Any]
    versions: dict[str, str]


class Saver:
    """One saver; a thread of LangGraph stands for a workflow, a checkpoint for a step, one channel for the state."""

    def __init__(self, name: str, saver: Any, thread_id: str, states: Sequence[Any]) -> None:
        self._name = name
        self._saver = saver
        self._thread_id = thread_id
        self._states = states
        saver.setup()

    def saves(self) -> Contestant:
        """One `put` each: a new checkpoint whose state has changed."""
        return Contestant(self._name, self._step, lambda step: self._saver.put(*step))

    def reads(self) -> Contestant:
        """One `get_tuple` by key each."""
        return Contestant(self._name, self._key, self._get)

    def fill(self, numbers: range) -> None:
        """Puts these steps into PostgreSQL, untimed and so without waiting for the disk each time."""
        self._saver.conn.execute("SET synchronous_commit = off")
        for number in numbers:
            self._saver.put(*self._step(number))
        self._saver.conn.execute("RESET synchronous_commit")

    def _get(self, config: dict[str, Any]) -> object:
        found = self._saver.get_tuple(config)
        if found is None or "state" not in found.checkpoint["channel_values"]:
            raise LookupError(f"no checkpoint under {config}")
        return found

    def _key(self, number: int) -> dict[str, Any]:
        return {"configurable": {"thread_id": self._thread_id, "checkpoint_ns": "", "checkpoint_id": _id(number)}}

    def _step(self, number: int) -> Put:
        version = f"{number:032}.0"
        configurable = {"thread_id": self._thread_id, "checkpoint_ns": ""}
        if number:
            configurable["checkpoint_id"] = _id(number - 1)
        checkpoint = {
            "v": 4,
            "id": _id(number),
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": {"state": self._states[number % len(self._states)]},
            "channel_versions": {"state": version},
            "versions_seen": {},
            "updated_channels": ["state"],
        }
        metadata = {"source": "loop", "step": number, "parents": {}}
        return Put({"configurable": configurable}, checkpoint, metadata, {"state": version})


def _id(number: int) -> str:
    return f"1f000000-0000-6000-8000-{number:012x}"


@contextmanager
def savers(server: Server, path: str, thread_id: str, states: Sequence[Any]) -> Iterator[list[Saver]]:
    """Both savers, the SQLite one in the file `path`; none where they are not installed."""
    with ExitStack() as stack:
        yield (
            [
                stack.enter_context(postgres_saver(server, thread_id, states)),
                stack.enter_context(_sqlite_saver(path, thread_id, states)),
            ]
            if installed()
            else []
        )


@contextmanager
def postgres_saver(server: Server, thread_id: str, states: Sequence[Any]) -> Iterator[Saver]:
    """PostgresSaver as its documentation makes it."""
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(server.url) as saver:
        yield Saver(POSTGRES_SAVER, saver, thread_id, states)


@contextmanager
def _sqlite_saver(path: str, thread_id: str, states: Sequence[Any]) -> Iterator[Saver]:
    from langgraph.checkpoint.sqlite import SqliteSaver

    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        yield Saver(SQLITE_SAVER, SqliteSaver(connection), thread_id, states)
