"""The worker under fuzz: fed with bytes in pieces, held to one right answer for each line."""

from __future__ import annotations

import json
import time
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

from tests.fuzz.verdict import Verdict, lines_of, verdict
from tests.support.responses import Responses
from tests.support.worker import Worker, WorkerGone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.support.reached import Reached

LIMIT = 1_000_000
DATA = "data"
PATIENCE = 60.0
# What only an answer tells, and a later request has to give back.
TOLD = ("approval_token", "next_cursor")
KEPT = 8
BETWEEN_PIECES = 0.0005


class Finding(Exception):
    """The worker did not do what it owes. `kind` is the same for findings of one sort, the message tells the case."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind


class _Judge(Responses):
    """Holds each answer to the schemas, and to the verdict on its line."""

    def __init__(self, reached: Reached) -> None:
        super().__init__(reached)
        self.verdicts: deque[tuple[bytes, Verdict]] = deque()
        self.codes: Counter[str] = Counter()
        self.told: deque[bytes] = deque(maxlen=KEPT)

    def check(self, line: bytes, action: str | None) -> dict[str, Any]:  # noqa: ARG002 - see the docstring
        """`action` is not looked at: it was found out by another reader of JSON."""
        if not self.verdicts:
            raise Finding("an answer too many", repr(line[:500]))
        asked, expected = self.verdicts.popleft()
        try:
            answer = super().check(line, expected.action)
        except AssertionError as error:
            raise Finding("an answer that breaks its schema", f"{error}; line {asked[:500]!r}") from None
        self.codes[answer["code"] or "success"] += 1
        breach = expected.breach(answer["code"])
        if breach is not None:
            raise Finding(breach, f"{asked[:500]!r} was answered with {line[:500]!r}")
        for name in TOLD:
            if answer["data"] is not None and answer["data"].get(name):
                self.told.append(json.dumps(answer["data"][name]).encode())
        return answer


class Target:
    """A runner process in `folder` that is started when it is needed, and anew after it ended."""

    def __init__(self, environment: Mapping[str, str], folder: Path, reached: Reached) -> None:
        self._folder = folder
        self._environment = {
            **environment,
            "CHECKPOINT_MAX_REQUEST_BYTES": str(LIMIT),
            "CHECKPOINT_DATA_DIR": str(folder / DATA),
        }
        self._judge = _Judge(reached)
        self._worker: Worker | None = None
        self._sentinels = 0
        self.lines = 0
        self.processes = 0

    @property
    def codes(self) -> Counter[str]:
        """How often each code came, and success."""
        return self._judge.codes

    @property
    def told(self) -> list[bytes]:
        """The latest tokens and cursors that were answered, as JSON."""
        return list(self._judge.told)

    def exchange(self, lines: Sequence[bytes], cuts: Sequence[int] = ()) -> None:
        """Sends the lines, cut into pieces at the offsets `cuts`, and reads what they owe. Raises Finding.

        A request of a known answer follows them, by which an answer too few or too many shows.
        """
        self._sentinels += 1
        name = f"sentinel-{self._sentinels}"
        sentinel = b'{"action":"get","workflow_id":"%s","step_id":"s"}' % name.encode()
        try:
            worker = self._send(b"".join(line + b"\n" for line in (*lines, sentinel)), cuts)
            while self._judge.verdicts:
                answer = worker.read_line(PATIENCE)
                worker.raw.clear()
            if answer["data"] is None or answer["data"]["workflow_id"] != name:
                raise Finding("answers out of step", f"the last request was answered with {answer}")
            if not worker.says_nothing(0):
                raise Finding("an answer too many", "after all requests were answered")
        except (AssertionError, TimeoutError) as error:
            raise self._found(error) from None
        except Finding:
            self.kill()
            raise

    def end(self, last: bytes) -> None:
        """Sends a last line without its line break, ends the input and takes the rest. Raises Finding."""
        try:
            worker = self._send(last.replace(b"\n", b""), ())
            worker.finish()
            if self._judge.verdicts:
                raise Finding("answers that did not come before the end", repr(last[:500]))
            if "Traceback" in worker.stderr:
                raise Finding("a traceback on stderr", worker.stderr[-3000:])
            strays = sorted(path.name for path in self._folder.iterdir() if path.name != DATA)
            if strays:
                raise Finding("files outside of the data folder", str(strays))
        except (AssertionError, TimeoutError) as error:
            raise self._found(error) from None
        finally:
            self.kill()

    def kill(self) -> None:
        """Ends the process, if there is one."""
        self._judge.verdicts.clear()
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def _send(self, stream: bytes, cuts: Sequence[int]) -> Worker:
        """Sends the stream to the worker, which is started if there is none, and notes what it owes."""
        if self._worker is None:
            self._worker = Worker(self._environment, self._judge, cwd=self._folder)
            self.processes += 1
            # Half of them get a byte order mark, the others something else, after which one is no longer allowed.
            self._worker.send_raw(b"\xef\xbb\xbf" if self.processes % 2 else b"\r\n", PATIENCE)
        for line in lines_of(stream):
            self.lines += 1
            self._judge.verdicts.append((line, verdict(line, LIMIT)))
        begin = 0
        for cut in sorted(cuts):
            self._worker.send_raw(stream[begin:cut], PATIENCE)
            begin = max(begin, cut)
            time.sleep(BETWEEN_PIECES)
        self._worker.send_raw(stream[begin:], PATIENCE)
        return self._worker

    def _found(self, error: BaseException) -> Finding:
        """What an error in talking to the worker says of it; the worker is ended."""
        kind = next((name for sort, name in _SORTS if isinstance(error, sort)), "answers without requests")
        self.kill()
        return Finding(kind, str(error)[:3000])


_SORTS = ((WorkerGone, "the worker ended"), (TimeoutError, "no answer in time"))
