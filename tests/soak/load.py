"""The load: every action, over keys whose states do not all fit into the cache, in batches of one fixed mix."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

    from tests.support.worker import Worker

WORKFLOWS, STEPS = 40, 50
COMMON, LARGE = 8_000, 400_000
# How many requests of each kind a batch has.
MIX = {
    "save": 16,
    "cached_get": 30,
    "get": 8,
    "cache": 6,
    "list": 3,
    "workflows": 1,
    "delete": 3,
    "refused": 5,
    "conflict": 3,
    "healthcheck": 1,
    "pending": 1,
    "request_approval": 2,
}
# One batch in so many has one of these too.
RARE = {"verify": 12, "rebuild": 20, "prune": 10, "large": 5}
REFUSED = {"success", "INVALID_JSON", "INVALID_ARG", "UNKNOWN_ACTION", "REVISION_CONFLICT"}


class Load:
    """Sends batches to one worker and reads every answer. Everything follows from `random`."""

    def __init__(self, worker: Worker, random: Random) -> None:
        self._worker = worker
        self._random = random
        self._batches = 0
        self.codes: Counter[str] = Counter()
        self.unforeseen: list[str] = []

    def fill(self, size: int) -> None:
        """Saves states of more than `size` bytes in all, one after the other."""
        for _ in range(size // LARGE + 2):
            self._exchange(["large"])

    def batch(self) -> None:
        """One batch of the mix, in a new order each time, sent at once and read to its last answer."""
        kinds = [kind for kind, count in MIX.items() for _ in range(count)]
        kinds += [kind for kind, every in RARE.items() if self._batches % every == 0]
        self._batches += 1
        self._random.shuffle(kinds)
        self._exchange(kinds)

    def _exchange(self, kinds: list[str]) -> None:
        self._worker.send_raw(b"".join(self._line(kind) + b"\n" for kind in kinds))
        for kind in kinds:
            answer = self._worker.read_line()
            self._count(kind, answer)
        self._worker.raw.clear()

    def _count(self, kind: str, answer: dict[str, Any]) -> None:
        code = answer["code"] or "success"
        self.codes[code] += 1
        right = code in REFUSED if kind in ("refused", "conflict") else code == "success"
        if not right:
            self.unforeseen.append(f"{kind} was answered with {str(answer)[:500]}")

    def _line(self, kind: str) -> bytes:
        random = self._random
        key = {"workflow_id": f"wf-{random.randrange(WORKFLOWS)}", "step_id": f"s-{random.randrange(STEPS)}"}
        match kind:
            case "save" | "cache":
                return _json({"action": kind, **key, "state_data": _state(random, random.randrange(COMMON))})
            case "large":
                return _json({"action": "save", **key, "state_data": _state(random, LARGE)})
            case "conflict":
                return _json({"action": "save", **key, "state_data": {}, "expected_revision": random.randrange(3)})
            case "list":
                return _json({"action": "list", "workflow_id": key["workflow_id"], "limit": 10})
            case "rebuild" | "verify":
                return _json({"action": kind, "workflow_id": random.choice([key["workflow_id"], ""])})
            case "request_approval":
                asked = {"workflow_id": "asked", "step_id": key["step_id"]}
                return _json({"action": kind, **asked, "input": key["step_id"], "report": "a report"})
            case "prune":
                return _json({"action": "prune", "older_than_sec": 3600, "dry_run": random.random() < 0.5})
            case "refused":
                refused = (b"not json", b'{"action":"stve"}', b'{"action":"get","workflow_id":""}', b'{"a":"\xff"}')
                return random.choice(refused)
            case "cached_get" | "get" | "delete":
                return _json({"action": kind, **key})
        return _json({"action": kind})


def _state(random: Random, length: int) -> dict[str, object]:
    """A state of about that many bytes which does not compress to nothing."""
    return {"n": random.getrandbits(64), "fill": random.randbytes(length // 2).hex()}


def _json(request: dict[str, object]) -> bytes:
    return json.dumps(request).encode()
