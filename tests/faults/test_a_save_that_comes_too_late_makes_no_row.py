"""A save that the network delivers long after it was given up makes no new row either (contract, section 3, save)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from checkpoint import CheckpointError, CheckpointManager
from checkpoint.authority.server_clock import ServerClock
from checkpoint.record import DEFAULT_TENANT, State

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from checkpoint.authority.upsert import Upsert
    from tests.support.database import Connection

STATES = [State("wf", f"step {number}", DEFAULT_TENANT, b'{"n":2}') for number in range(3)]
ROWS = "SELECT step_id, state_data ->> 'n', revision FROM workflow_checkpoints ORDER BY step_id"


def _nothing() -> None:
    """What is done meanwhile."""


@pytest.fixture
def upsert(database_url: str, schema: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Upsert]:
    """Saves whose statements tell that they were sent in 1970; "step 1" was saved as {"n": 1} before."""
    with CheckpointManager(database_url=database_url, schema=schema, data_dir=folder) as manager:
        manager.save("wf", "step 1", {"n": 1})
        monkeypatch.setattr(ServerClock, "earliest", lambda _clock: 0)
        yield manager._runtime.authority.upsert


def test_saves_sent_together(upsert: Upsert, sql: Connection) -> None:
    """A batch writes nothing, neither new keys nor over the row that is there, and tells so of each."""
    assert upsert.save_together(STATES, _nothing) == [None] * len(STATES)
    assert sql.execute(ROWS).fetchall() == [("step 1", "1", 1)]


@pytest.mark.parametrize("expected", [None, 0], ids=["save", "compare and set"])
def test_a_save_alone(upsert: Upsert, sql: Connection, expected: int | None) -> None:
    """The same for one: it is PG_WRITE_ERROR, and there is no row."""
    with pytest.raises(CheckpointError) as caught:
        upsert.save(STATES[0], expected)
    assert caught.value.code == "PG_WRITE_ERROR"
    assert sql.execute(ROWS).fetchall() == [("step 1", "1", 1)]
