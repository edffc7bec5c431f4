"""Ctrl-C that comes together with SQLite's write lock leaves no lock behind, and the file where it is (contract, section 3)."""

from __future__ import annotations

import signal
import sqlite3
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from checkpoint.cache.connection import CacheConnection
from tests.support.cache_file import NAME, moved_aside, opened
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from checkpoint import CheckpointManager
    from tests.doors.conftest import Spot

ASKS_FOR_THE_LOCK = next(
    code for code in CacheConnection.change.__code__.co_consts if getattr(code, "co_name", None) == "transaction"
)
CALLS: dict[str, Callable[[CheckpointManager], object]] = {
    "cache": lambda manager: manager.cache("wf", "lossy", {"n": 2}),
    "rebuild": lambda manager: manager.rebuild(),
}


def interrupt_with_the_lock(folder: Path, call: Callable[[], object]) -> None:
    """Makes the call while the cache is locked; Ctrl-C comes in its wait for the lock, which is free at once then."""
    main = threading.get_ident()
    locked = threading.Event()

    def waits() -> bool:
        frame = sys._current_frames().get(main)
        return frame is not None and frame.f_code is ASKS_FOR_THE_LOCK

    def hold() -> None:
        with opened(folder) as other:
            other.execute("BEGIN IMMEDIATE")
            locked.set()
            until(waits, "the call asks for the lock")
            time.sleep(0.05)
            signal.pthread_kill(main, signal.SIGINT)
            other.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    locked.wait()
    with pytest.raises(KeyboardInterrupt):
        call()
    thread.join()


@pytest.mark.parametrize("name", CALLS)
def test_others_can_write_and_the_manager_works(manager: CheckpointManager, here: Spot, name: str) -> None:
    """Another connection gets the lock at once, the next calls are served, and the file is not taken for damaged."""
    manager.save("wf", "s", {"n": 1})
    manager.cache("wf", "lossy", {"n": 1})
    interrupt_with_the_lock(here.folder, lambda: CALLS[name](manager))
    with closing(sqlite3.connect(here.folder / NAME, isolation_level=None, timeout=0)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("ROLLBACK")
    assert manager.cache("wf", "lossy", {"n": 3}).written
    assert manager.cached_get("wf", "lossy").state_data == {"n": 3}
    assert manager.save("wf", "s", {"n": 4}).cache_written
    hit = manager.cached_get("wf", "s")
    assert (hit.source, hit.state_data) == ("sqlite", {"n": 4})
    assert manager.rebuild().rebuilt_count == 1
    assert manager.verify().consistent
    assert moved_aside(here.folder) == []
