"""Writers and readers: each drives one runner process after the other and holds its answers to the ledger."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.chaos import ledger as book
from tests.chaos.requests import Requests, Session
from tests.support.worker import Worker, WorkerGone

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping
    from pathlib import Path
    from random import Random

    from tests.chaos.ledger import Key, Ledger
    from tests.chaos.requests import Step
    from tests.support.responses import Responses

# More than twice the time-outs of the storm and a second, within which every answer has to come.
PATIENCE = 30.0
AFTER_A_FAILURE = 0.03


class Keys(NamedTuple):
    """All keys, those that one actor owns, and those that all writers contend for."""

    every: list[Key]
    own: list[Key]
    contended: list[Key]


class Actor(threading.Thread):
    """Sends requests until it is told to stop, through a new process whenever the last one was killed.

    `folder` is its data folder, which it may share. A reader is an actor that owns no key.
    """

    def __init__(
        self,
        name: str,
        environment: Mapping[str, str],
        folder: Path,
        responses: Responses,
        ledger: Ledger,
        keys: Keys,
        random: Random,
        answers: Counter[str],
    ) -> None:
        super().__init__(name=name)
        self._environment = {**environment, "CHECKPOINT_DATA_DIR": str(folder)}
        self._responses = responses
        self._ledger = ledger
        self._keys = keys
        self._random = random
        self._answers = answers
        self._stop_asked = threading.Event()
        self._process = threading.Lock()
        self._worker: Worker | None = None
        self._killed = False
        self.requests = 0

    def stop(self) -> None:
        """Asks it to end after the request under way."""
        self._stop_asked.set()

    def kill(self) -> bool:
        """SIGKILL to its process; False where there is none at the moment."""
        with self._process:
            if self._worker is None or self._killed:
                return False
            self._killed = True
            self._worker.process.kill()
            return True

    def run(self) -> None:
        """Until it is told to stop."""
        while not self._stop_asked.is_set():
            worker = Worker(self._environment, self._responses)
            with self._process:
                self._worker, self._killed = worker, False
            try:
                self._serve(worker)
                self._end(worker)
            except WorkerGone as gone:
                if not self._killed:
                    self._ledger.wrong(book.ENDED_ALONE, f"{self.name}: {gone}")
            except TimeoutError as error:
                self._ledger.wrong(book.BAD_ANSWERS, f"{self.name}: no answer in {PATIENCE} s: {error}")
            except Exception as error:  # whatever it is, the storm goes on and tells it
                self._ledger.wrong(book.BAD_ANSWERS, f"{self.name}: {type(error).__name__}: {error}")
            finally:
                with self._process:
                    self._worker = None
                worker.kill()
                if "Traceback" in worker.stderr:
                    self._ledger.wrong(book.REFUSED_WRONGLY, f"{self.name} says on stderr: {worker.stderr[-3000:]}")

    def _serve(self, worker: Worker) -> None:
        requests = Requests(self.name, self._ledger, Session(), self._random)
        while not self._stop_asked.is_set():
            lot = self._random.random() if self._keys.own else 1.0
            if lot < 0.15:
                self._compare_and_set(worker, requests, self._random.choice(self._keys.contended))
            elif lot < 0.4:
                key = self._random.choice(self._keys.own)
                self._exchange(worker, [requests.save(key)])
                self._exchange(worker, [requests.cached_get(key)])
            else:
                self._exchange(worker, self._steps(requests))

    def _compare_and_set(self, worker: Worker, requests: Requests, key: Key) -> None:
        revisions: list[int] = []
        self._exchange(worker, [requests.get(key, revisions)])
        if revisions:
            self._exchange(worker, [requests.save(key, revisions[0])])
            self._exchange(worker, [requests.cached_get(key)])

    def _end(self, worker: Worker) -> None:
        try:
            rest = worker.finish()
        except AssertionError:  # its exit status
            if not self._killed:
                raise
            return
        if rest:
            self._ledger.wrong(book.BAD_ANSWERS, f"{self.name}: answers to no request: {rest}")

    def _steps(self, requests: Requests) -> list[Step]:
        """One request, or now and then several that the worker finds waiting together."""
        random, keys = self._random, self._keys
        many = 1 if random.random() < 0.8 else random.randrange(2, 12)
        own = keys.own and random.random() < 0.8
        steps: list[Step] = []
        for _ in range(many):
            key = random.choice(keys.own if own else keys.every)
            lot = random.random()
            if own and lot < 0.6:
                steps.append(requests.save(key))
            elif own and lot < 0.64:
                steps.append(requests.delete(key))
            elif lot < 0.86:
                steps.append(requests.cached_get(key))
            elif lot < 0.94:
                steps.append(requests.get(key, []))
            elif lot < 0.985:
                steps.append(requests.list([other for other in keys.every if other.workflow_id == key.workflow_id]))
            elif lot < 0.992:
                steps.append(requests.verify())
            elif lot < 0.997:
                steps.append(requests.rebuild())
            else:
                steps.append(requests.healthcheck())
        return steps

    def _exchange(self, worker: Worker, steps: list[Step]) -> None:
        lines = [json.dumps(step.request).encode() + b"\n" for step in steps]
        worker.send_raw(b"".join(lines), PATIENCE)
        failed = False
        for step in steps:
            answer: dict[str, Any] = worker.read_line(PATIENCE)
            self.requests += 1
            self._answers[answer["code"] or "success"] += 1
            failed = failed or not answer["success"]
            step.judge(answer)
        worker.raw.clear()
        if failed:
            self._stop_asked.wait(AFTER_A_FAILURE)
