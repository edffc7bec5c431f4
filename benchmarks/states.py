"""States to save: JSON of a given size that looks like a workflow's, so that there is something to compress in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from random import Random

KB = 1024
SYLLABLES = ("ka", "lo", "mi", "ren", "ta", "su", "vo", "del", "pri", "nor", "e", "ist", "an", "gu", "che", "um")
WORDS = 2000
ROLES = ("user", "assistant", "tool")


class States:
    """Makes states out of one random source."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._words = ["".join(random.choices(SYLLABLES, k=random.randint(1, 4))) for _ in range(WORDS)]
        self._weights = [1 / (rank + 3) for rank in range(WORDS)]  # a few words make most of a text

    def value(self, size: int) -> dict[str, Any]:
        """A state whose JSON text has about `size` bytes."""
        state: dict[str, Any] = {"progress": self._random.randint(0, 100), "done": [], "messages": []}
        room = size - len(orjson.dumps(state))
        while room > 0:
            message = self._message()
            text = orjson.dumps(message)
            if len(text) > room:
                message["content"] = message["content"][: max(0, room - len(text)) or None]
            state["messages"].append(message)
            room -= len(text) + 1
        return state

    def text(self, size: int) -> bytes:
        """The same as JSON text."""
        return orjson.dumps(self.value(size))

    def _message(self) -> dict[str, Any]:
        words = self._random.choices(self._words, self._weights, k=self._random.randint(8, 60))
        return {
            "id": f"{self._random.getrandbits(64):016x}",
            "role": self._random.choice(ROLES),
            "at": round(1.7e9 + self._random.random() * 1e7, 3),
            "tokens": self._random.randint(1, 4000),
            "content": " ".join(words),
        }
