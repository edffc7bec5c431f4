"""Several workers on one cache file: no key ever goes back, and none disturbs another (contract, section 3)."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from tests.support.asking import done
from tests.support.cache_file import COMPANIONS, GARBAGE, NAME, moved_aside, query, replace, until_cached
from tests.support.place import NO_HURRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

STEPS = [f"step {number}" for number in range(8)]


def at_once(works: Iterable[Callable[[], None]]) -> None:
    """Does all of it at the same time, each in a thread; raises the first error of any."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_no_key_ever_goes_back(start_worker: StartWorker) -> None:
    """Three workers save and read the same keys under load: what each reads of a key never gets older."""
    workers = [start_worker() for _ in range(3)]
    done(workers[0], "save", workflow_id="wf", step_id="first", state_data={})

    def life(worker: Worker, name: int) -> Callable[[], None]:
        def run() -> None:
            newest = dict.fromkeys(STEPS, 0)
            for number in range(150):
                step = STEPS[(number * (name + 1)) % len(STEPS)]
                if number % 3 == name:
                    row = done(worker, "save", workflow_id="wf", step_id=step, state_data={"by": name})
                else:
                    row = done(worker, "cached_get", workflow_id="wf", step_id=step)
                if row.get("found", True):
                    assert row["revision"] >= newest[step], (name, number, row)
                    newest[step] = row["revision"]

        return run

    at_once(life(worker, name) for name, worker in enumerate(workers))
    for worker in workers:
        for step in STEPS:
            kept, cached = (done(worker, action, workflow_id="wf", step_id=step) for action in ("get", "cached_get"))
            assert cached.get("revision") == kept.get("revision")
        assert worker.finish() == []
    assert done(start_worker(), "verify")["consistent"] is True


def test_lives_and_deaths_by_turns_never_go_back(start_worker: StartWorker) -> None:
    """One worker deletes and saves anew, another reads: it never sees an earlier life after a later one."""
    writer, reader = start_worker(), start_worker()
    key = {"workflow_id": "wf", "step_id": "s"}
    done(writer, "save", **key, state_data={"n": 0})
    over = threading.Event()

    def write() -> None:
        try:
            for number in range(1, 120):
                if number % 4 == 0:
                    done(writer, "delete", **key)
                done(writer, "save", **key, state_data={"n": number})
        finally:
            over.set()

    def read() -> None:
        newest = 0
        while not over.is_set():
            row = done(reader, "cached_get", **key)
            if row["found"]:
                assert row["state_data"]["n"] >= newest
                newest = row["state_data"]["n"]

    at_once([write, read])


def test_saves_under_way_are_no_false_alarm(start_worker: StartWorker) -> None:
    """One worker saves without pause while another verifies: every verify is consistent."""
    saver, verifier = start_worker(), start_worker()
    steps = [f"step {number}" for number in range(40)]
    for step in steps:
        done(saver, "save", workflow_id="wf", step_id=step, state_data={"n": 0})
    over = threading.Event()

    def save() -> None:
        number = 0
        while not over.is_set():
            number += 1
            done(saver, "save", workflow_id="wf", step_id=steps[number % len(steps)], state_data={"n": number})

    def verify() -> None:
        try:
            for number in range(25):
                answer = done(verifier, "verify")
                assert answer["consistent"], (number, answer["mismatches"])
        finally:
            over.set()

    at_once([save, verify])


def test_two_workers_that_meet_a_corrupt_file_move_only_that_aside(start_worker: StartWorker, folder: Path) -> None:
    """Both come upon the garbage at once: it is moved aside, never the fresh file that the other one has just made."""
    workers = [start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}) for _ in range(2)]
    for number, worker in enumerate(workers):
        done(worker, "save", workflow_id="wf", step_id=STEPS[number], state_data={"n": -1})

    for number in range(40):
        garbage = GARBAGE + str(number).encode()
        replace(folder / NAME, garbage)

        def meet(worker: Worker, step: str, number: int) -> Callable[[], None]:
            def run() -> None:
                saved = done(worker, "save", workflow_id="wf", step_id=step, state_data={"n": number})
                assert saved["cache_written"] is True

            return run

        at_once(meet(worker, step, number) for worker, step in zip(workers, STEPS, strict=False))
        assert {path.read_bytes()[:20] for path in moved_aside(folder)} == {GARBAGE[:20]}, f"round {number}"
        statement = "SELECT count(*) FROM checkpoint_cache WHERE step_id IN (?, ?)"
        assert query(folder, statement, *STEPS[:2]) == [(2,)], f"round {number}: one worker wrote into a lost file"


def test_only_a_few_corrupt_files_are_kept(start_worker: StartWorker, folder: Path) -> None:
    """Files moved aside do not pile up without end."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    for number in range(12):
        done(worker, "save", workflow_id="wf", step_id="s", state_data={"n": number})
        replace(folder / NAME, GARBAGE)
    done(worker, "save", workflow_id="wf", step_id="s", state_data={})
    assert 1 <= len(moved_aside(folder)) < 12


def test_a_file_taken_away_while_it_is_used_is_noticed_by_all(start_worker: StartWorker, folder: Path) -> None:
    """The file deleted again and again while two workers save: at rest both use the one that is there."""
    workers = [start_worker() for _ in range(2)]
    over = threading.Event()

    def save(worker: Worker, step: str) -> Callable[[], None]:
        def run() -> None:
            number = 0
            while not over.is_set():
                number += 1
                done(worker, "save", workflow_id="wf", step_id=step, state_data={"n": number})
                row = done(worker, "cached_get", workflow_id="wf", step_id=step)
                assert row["state_data"] == {"n": number}

        return run

    def delete() -> None:
        try:
            for _ in range(80):
                time.sleep(0.01)  # the pace of the accident, not a wait for something
                for suffix in COMPANIONS:
                    (folder / (NAME + suffix)).unlink(missing_ok=True)
        finally:
            over.set()

    at_once([*(save(worker, step) for worker, step in zip(workers, STEPS, strict=False)), delete])
    for worker, step in zip(workers, STEPS, strict=False):
        done(worker, "save", workflow_id="wf", step_id=step, state_data={"n": "last"})
        until_cached(folder, "wf", step, {"n": "last"})
    for worker in workers:
        for step in STEPS[:2]:
            rows = [done(worker, "cached_get", workflow_id="wf", step_id=step) for _ in range(2)]
            assert [row["state_data"] for row in rows] == [{"n": "last"}] * 2
            assert rows[-1]["source"] == "sqlite"
