"""Approvals from question to decision, with output paths that no caller should send (contract, section 5)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

PARTS = (
    *("a", "b", "a.txt", "报告", "é" * 100, "e\u0301", "x" * 200, "x" * 255, "x" * 256, "😀" * 64, "\u202etxt"),
    *(
        "",
        ".",
        "..",
        "~",
        "-rf",
        "%2e%2e",
        "a\\b",
        "nul",
        "CON",
        "a:b",
        "a b",
        " ",
        "a.",
        "a\u0000",
        "a\n",
        "\u0085",
        "*",
    ),
)
REPORTS = ("r", "report\n", "\u2028", "\x00", "é" * 5000, "\\", "\r\n")
DECISIONS = ("approve", "approve", "approve", "reject")


class Approvals:
    """Makes the lines of one approval after the other; everything follows from `random`."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._ids: dict[str, str] = {}
        self._number = 0

    def question(self) -> bytes:
        """A request_approval of a key that had none."""
        self._number += 1
        self._ids = {"workflow_id": "asked", "step_id": f"{self._random.choice(PARTS)} {self._number}"}
        asked = {
            "action": "request_approval",
            **self._ids,
            "input": self._number,
            "report": self._random.choice(REPORTS),
        }
        if self._random.random() < 0.8:
            # A folder of its own, so that no file of another approval is in the way, or a way that leads out.
            first = self._random.choice((str(self._number), str(self._number), str(self._number), "", "..", "."))
            asked["output"] = "/".join([first, *self._random.choices(PARTS, k=self._random.choice((1, 1, 2, 3, 30)))])
        return json.dumps(asked, ensure_ascii=self._random.random() < 0.5).encode()

    def decisions(self, token: bytes) -> list[bytes]:
        """Some decisions on it with its token, which is JSON, and what it looks like then."""
        lines = []
        for _ in range(self._random.choice((1, 2, 3))):
            ids = json.dumps({"action": self._random.choice(DECISIONS), **self._ids}).encode()
            lines.append(ids[:-1] + b', "token": ' + token + b"}")
        return [*lines, json.dumps({"action": "get", **self._ids}).encode()]
