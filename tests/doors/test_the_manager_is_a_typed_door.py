"""CheckpointManager: what Python callers get beyond the same answers (contract, sections 2, 3 and 6)."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import checkpoint
from checkpoint import CheckpointError, CheckpointManager, SettingsError
from checkpoint.errors import CODES
from tests.doors.conftest import opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.doors.conftest import Spot

TEXT = '{"n":123456789012345678901234567890, "f":1.0,"e":1E5,"z":-0.0,"u":"\\u00e9\\u0000","n":1}'


@pytest.fixture
def offline(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CheckpointManager]:
    """One without PostgreSQL."""
    monkeypatch.delenv("DATABASE_URL", raising=False)
    with CheckpointManager(data_dir=folder) as manager:
        yield manager


def test_a_state_goes_in_and_out_as_a_dict_or_as_its_text(manager: CheckpointManager) -> None:
    """A dict comes back equal; text comes back as the text that it was, whichever way it is read."""
    state = {"big": 2**80, "float": 1.5, "text": "\u2028 é \x00", "nested": [None, {"x": True}]}
    manager.save("wf", "dict", state)
    assert manager.get("wf", "dict").state_data == state
    for text in (TEXT, TEXT.encode()):
        manager.save("wf", "text", text)
        for found in (manager.get("wf", "text"), manager.cached_get("wf", "text")):
            assert found.state_text == TEXT
            assert found.state_data == json.loads(TEXT)
    assert {row.state_text for row in manager.list("wf").checkpoints} == {
        TEXT,
        json.dumps(state, separators=(",", ":"), ensure_ascii=False),
    }
    nothing = manager.get("wf", "none")
    assert (nothing.found, nothing.state_data, nothing.state_text, nothing.revision) == (False, None, None, None)
    assert manager.list("wf", include_state=False).checkpoints[0].state_data is None


def test_an_answer_shows_its_state_where_it_is_printed(manager: CheckpointManager) -> None:
    """The repr of a row holds the text of its state, and that of a missing one says so."""
    manager.save("wf", "s", '{"n": 1}')
    assert """state_text='{"n": 1}', workflow_id='wf', step_id='s'""" in repr(manager.get("wf", "s"))
    assert "state_text=None" in repr(manager.get("wf", "other"))


def test_times_are_datetimes(manager: CheckpointManager) -> None:
    """Aware ones, in the zone of the settings."""
    saved = manager.save("wf", "s", {})
    assert saved.created_at.utcoffset() == UTC.utcoffset(None)
    assert abs((datetime.now(UTC) - saved.updated_at).total_seconds()) < 600
    assert manager.get("wf", "s").updated_at == saved.updated_at


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({"x": float("nan")}, "INVALID_JSON"),
        ({"x": {1, 2}}, "INVALID_JSON"),
        ({"x": "\ud800"}, "INVALID_JSON"),
        ('{"x":NaN}', "INVALID_JSON"),
        ('{"x":1', "INVALID_JSON"),
        ("", "INVALID_JSON"),
        (b"\xff", "INVALID_JSON"),
        ('{},"tenant_id":"other"', "INVALID_JSON"),
        ('{},"step_id":"other"', "INVALID_JSON"),
        ("[1]", "INVALID_ARG"),
        (None, "INVALID_ARG"),
    ],
)
def test_what_is_no_state_is_refused_and_changes_nothing(offline: CheckpointManager, state: Any, code: str) -> None:
    """The refusals of the same line; a text cannot smuggle in another field."""
    with pytest.raises(CheckpointError) as caught:
        offline.cache("wf", "s", state)
    assert caught.value.code == code
    assert offline.healthcheck().sqlite.entries in (None, 0)
    assert offline.healthcheck().counters.errors == {code: 1}


def test_an_error_carries_its_code_and_what_to_do(offline: CheckpointManager) -> None:
    """The code is one of the contract's, the text names the way out."""
    with pytest.raises(CheckpointError, match="DATABASE_URL") as caught:
        offline.get("wf", "s")
    assert caught.value.code == "DB_NOT_CONFIGURED"
    assert caught.value.code in CODES


def test_keywords_stand_before_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A keyword wins, None unsets, what is left out comes from the environment."""
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:secret@127.0.0.1:1/none")
    monkeypatch.setenv("CHECKPOINT_DATA_DIR", "/nowhere")
    monkeypatch.setenv("CHECKPOINT_TENANT", "mine")
    with CheckpointManager(database_url=None, data_dir=folder, cache_wait_ms=10_000) as manager:
        assert manager.cache("wf", "s", {}).tenant_id == "mine"
        health = manager.healthcheck()
    assert health.pg.configured is False
    assert health.sqlite.path == str(folder / "cache.db")


def test_a_setting_that_cannot_be_used_is_refused_at_once() -> None:
    """A bad value names its variable; a misspelt name is a TypeError."""
    with pytest.raises(SettingsError, match="CHECKPOINT_CACHE_TTL"):
        CheckpointManager(cache_ttl=-1)
    with pytest.raises(TypeError, match="databse_url"):
        CheckpointManager(databse_url="embedded:")  # type: ignore[call-arg]


def test_threads_share_a_manager(manager: CheckpointManager) -> None:
    """Eight threads save one key fifty times each: no save is lost, no answer goes to another."""

    def work(number: int) -> None:
        for _ in range(50):
            assert manager.save("wf", "shared", {"by": number}).step_id == "shared"
            assert manager.save("wf", f"own-{number}", {"by": number}).step_id == f"own-{number}"
            assert manager.cached_get("wf", f"own-{number}").state_data == {"by": number}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert manager.get("wf", "shared").revision == 400
    assert {manager.get("wf", f"own-{number}").revision for number in range(8)} == {50}


def test_progress_is_told_to_whom_asks(manager: CheckpointManager, here: Spot) -> None:
    """The rows done so far, and at the end how many there were."""
    manager.workflows()
    here.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data)"
        " SELECT 'wf', 'step-' || n, 'default', '{}' FROM generate_series(1, 2000) n"
    )
    told: list[tuple[int, int | None]] = []
    manager.rebuild(on_progress=lambda done, total: told.append((done, total)))
    assert told == [(1000, None), (2000, 2000)]
    told.clear()
    manager.verify(workflow_id="none", on_progress=lambda done, total: told.append((done, total)))
    assert told == [(0, 0)]
    manager.rebuild()
    assert told == [(0, 0)]


def test_after_close_and_after_a_fork_it_says_that_it_cannot_be_used(offline: CheckpointManager) -> None:
    """RuntimeError, at once; in the child `close` leaves alone what is the parent's."""
    offline.cache("wf", "s", {})
    child = os.fork()
    if child == 0:
        status = 1
        try:
            offline.cached_get("wf", "s")
        except RuntimeError as error:
            offline.close()
            status = 0 if "fork" in str(error) else 2
        os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert offline.cached_get("wf", "s").found
    offline.close()
    offline.close()
    with pytest.raises(RuntimeError, match="closed"):
        offline.cached_get("wf", "s")


def test_what_was_queued_for_the_cache_is_there_after_close(here: Spot) -> None:
    """The block's end waits for the cache writer."""
    here.settings["CHECKPOINT_CACHE_WAIT_MS"] = "0"
    with opened(here) as manager:
        for number in range(50):
            manager.save("wf", f"s{number}", {"n": number})
    here.settings["DATABASE_URL"] = None
    with opened(here) as manager:
        assert all(manager.cached_get("wf", f"s{number}").found for number in range(50))


def test_the_package_says_what_it_has() -> None:
    """Its names are loaded when they are asked for, others do not exist, and it is typed."""
    assert set(checkpoint.__all__) == {"CheckpointManager", "CheckpointError", "SettingsError"}
    with pytest.raises(AttributeError, match="Nothing"):
        _ = checkpoint.Nothing
