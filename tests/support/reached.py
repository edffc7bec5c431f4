"""Which codes the tests of a run were answered, over all its processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

SUCCESS = "-"


class Reached:
    """A file in the folder of the run to which every process of it appends; short appends do not mix."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "codes-reached"
        self._known: set[tuple[str | None, str | None]] = set()

    def add(self, action: str | None, code: str | None) -> None:
        """One answer to `action`; `code` is None for a success."""
        if (action, code) in self._known:
            return
        self._known.add((action, code))
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, f"{code or SUCCESS}\n".encode())
        finally:
            os.close(file)

    def codes(self) -> set[str]:
        """Every code that was answered so far to any process of the run."""
        if not self._path.exists():
            return set()
        return set(self._path.read_text(encoding="utf-8").split()) - {SUCCESS}
