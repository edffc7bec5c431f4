"""Ctrl-C in a Python manager, wherever it comes, leaves a manager that works and tells the truth (contract, section 3)."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import sys
import threading
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

import pytest

from checkpoint import CheckpointError, adaptive_wait
from checkpoint.cache.cache import Cache
from tests.doors.conftest import opened
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from checkpoint import CheckpointManager
    from tests.doors.conftest import Spot

INTERRUPTS = 60


def test_in_a_save_that_waits_for_a_lock(manager: CheckpointManager, here: Spot) -> None:
    """A KeyboardInterrupt in a save that waits comes through, and the next calls are served truthfully."""
    manager.save("wf", "s", {"n": 1})
    main = threading.get_ident()
    with here.sql.transaction():
        here.sql.execute("LOCK TABLE workflow_checkpoints IN SHARE ROW EXCLUSIVE MODE")
        question = "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY (pg_blocking_pids(pid))"

        def interrupt() -> None:
            until(lambda: here.sql.execute(question).fetchone() != (0,), "the save waits for the lock")
            signal.pthread_kill(main, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            manager.save("wf", "s", {"n": 2})
        thread.join()
    found = manager.get("wf", "s")
    assert manager.cached_get("wf", "s").state_data == found.state_data
    assert manager.save("wf", "s", {"n": 3}).revision == (found.revision or 0) + 1
    assert manager.cached_get("wf", "s").state_data == {"n": 3}


def test_in_a_wait_made_awake(manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same where it comes while the answer of a save is looked for: the statement is not left under way."""

    def interrupted() -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    came = 0
    for number in range(50):
        manager.save("wf", "s", {"n": number})
        monkeypatch.setattr(adaptive_wait, "_yield", interrupted)
        try:
            manager.save("wf", "s", {"n": number})
        except KeyboardInterrupt:
            came += 1
        monkeypatch.undo()
        assert manager.get("wf", "s").found
    assert came, "no wait was made awake"


def go_on_until_interrupted(chance: random.Random, calls: Sequence[Callable[[], object]]) -> None:
    """Makes one call after another until a KeyboardInterrupt comes, at a time that nobody knows."""
    after = chance.random() * chance.choice((0.003, 0.02))
    again = 0.5  # it may come where Python itself drops it: in a __del__
    with contextlib.suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, after, again)
        while True:
            chance.choice(calls)()
    signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.fixture
def alarm_is_ctrl_c() -> Iterator[None]:
    """A timer raises what Ctrl-C raises, at any step of the code."""

    def interrupt(*_args: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("alarm_is_ctrl_c")
def test_anywhere(manager: CheckpointManager) -> None:
    """What a manager says after each of many interruptions is what stands, and its cache is of use again."""
    chance = random.Random(8)
    calls: list[Callable[[], object]] = [
        lambda: manager.save("wf", "s", {"n": chance.random()}),
        lambda: manager.save("wf", "large", {"n": chance.random(), "x": "x" * 300_000}),
        lambda: manager.delete("wf", "large"),
        lambda: manager.get("wf", "s"),
        lambda: manager.cached_get("wf", "large"),
        lambda: manager.list("wf"),
        manager.verify,
        manager.rebuild,
    ]
    manager.save("wf", "s", {})
    for _ in range(INTERRUPTS):
        go_on_until_interrupted(chance, calls)
        for step in ("s", "large"):
            found = manager.get("wf", step)
            assert manager.cached_get("wf", step).state_text == found.state_text
            assert not found.found or manager.cached_get("wf", step).source == "sqlite"
        revision = manager.get("wf", "s").revision or 0
        assert manager.save("wf", "s", {"n": 0}, expected_revision=revision).revision == revision + 1
    manager.rebuild()
    assert manager.verify().consistent


class InterruptAt:
    """Raises KeyboardInterrupt before the nth step of the interpreter inside one file."""

    def __init__(self, file: str, step: int) -> None:
        self._file = file
        self._left = step

    @property
    def came(self) -> bool:
        """Whether there were so many steps."""
        return self._left == 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> InterruptAt | None:
        """What `sys.settrace` takes."""
        if frame.f_code.co_filename != self._file:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self._left -= 1
            if self.came:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


def test_at_any_step_inside_the_locks_that_threads_share(here: Spot) -> None:
    """A cache write that is handed to the background, interrupted at every step in `threading`: other threads go on."""
    here.settings["CHECKPOINT_CACHE_WAIT_MS"] = "0"
    with opened(here) as manager:
        _interrupt_at_every_step(manager, here)


def _interrupt_at_every_step(manager: CheckpointManager, here: Spot) -> None:
    manager.save("wf", "s", {})
    for step in count(1):
        interrupt = InterruptAt(threading.__file__, step)
        with closing(sqlite3.connect(here.folder / "cache.db", isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            sys.settrace(interrupt)
            with contextlib.suppress(KeyboardInterrupt):
                manager.save("wf", "s", {"step": step})
            sys.settrace(None)
        thread = threading.Thread(target=manager.save, args=["wf", "s", {"after": step}], daemon=True)
        thread.start()
        thread.join(20)
        assert not thread.is_alive(), f"step {step}"
        if not interrupt.came:
            return


def test_an_exception_of_another_kind_from_a_signal_handler(
    manager: CheckpointManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes INTERNAL_ERROR; what the call had done is told by the next one, from the cache too."""

    def late(*_args: object) -> None:
        raise Late

    manager.save("wf", "s", {"n": 1})
    with monkeypatch.context() as patch:
        patch.setattr(Cache, "put", late)
        with pytest.raises(CheckpointError, match="traceback"):
            manager.save("wf", "s", {"n": 2})
    assert manager.cached_get("wf", "s").state_data == {"n": 2}


class Late(Exception):
    """What a time limit of the caller's own might raise."""
