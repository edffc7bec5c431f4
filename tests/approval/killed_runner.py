"""A runner that kills itself with SIGKILL at one point of an `approve`. The tests start it in place of runner.py.

KILL_AT is the number of the point, counted from 1, or `NAME:NUMBER` for the NUMBERth point of that name. Points are the
calls that can leave something behind, each just before it is made; a write counts twice, since the first call writes
half. NO_LINKS makes the file system one without hard links, NO_RENAMES one that also cannot rename without replacing.

With FAIL_WITH, an errno, nothing is killed: of every two `approve` requests the first one meets that error from the
file system, the first pair at point 1, the second at point 2, and so on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import runpy
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

RUNNER = Path(__file__).resolve().parents[2] / "runner.py"
OS_CALLS = ("open", "mkdir", "chmod", "fchmod", "fsync", "link", "unlink", "rename")
write = os.write


class Points:
    """Counts the points that are passed once an `approve` has begun."""

    def __init__(self, kill_at: str, fail_with: int) -> None:
        name, _, number = kill_at.rpartition(":")
        self._target = (name or None, int(number or 0))
        self._fail_with = fail_with
        self._passed: Counter[str | None] = Counter()
        self._half_written: set[int] = set()
        self._requests = 0
        self.begun = False

    @contextlib.contextmanager
    def request(self) -> Iterator[None]:
        """An `approve` begins. Its points go on beyond it, to the answer, unless they are failures of the file system."""
        if self._fail_with:
            self._passed.clear()
            self._target = (None, 0 if self._requests % 2 else self._requests // 2 + 1)
        self._requests += 1
        self.begun = True
        try:
            yield
        finally:
            self.begun = not self._fail_with

    def before(self, name: str) -> None:
        """The process is about to do `name`."""
        if not self.begun:
            return
        self._passed.update((None, name))
        wanted, number = self._target
        if wanted not in (None, name) or self._passed[wanted] != number:
            return
        if self._fail_with:
            raise OSError(self._fail_with, os.strerror(self._fail_with))
        write(2, f"killed before {name}\n".encode())
        os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, owner: Any, attribute: str, name: str) -> None:
        """Makes every call of an attribute a point."""
        original = getattr(owner, attribute)

        def watched(*arguments: Any, **options: Any) -> Any:
            self.before(name)
            return original(*arguments, **options)

        setattr(owner, attribute, watched)

    def write_in_halves(self, descriptor: int, data: bytes) -> int:
        """os.write that stops in the middle the first time; it may, and whoever writes has to go on."""
        self.before("write")
        if self.begun and descriptor not in self._half_written and len(data) > 1:
            self._half_written.add(descriptor)
            return write(descriptor, bytes(data)[: len(data) // 2])
        self._half_written.discard(descriptor)
        return write(descriptor, data)


def refuse_links(*_: object, **__: object) -> None:
    """os.link on a file system without hard links."""
    raise OSError(errno.EPERM, os.strerror(errno.EPERM))


def main() -> None:
    """Puts the points in place and becomes the runner."""
    fail_with = int(os.environ.get("FAIL_WITH", "0"))
    points = Points(os.environ.get("KILL_AT", ""), fail_with)
    if os.environ.get("NO_LINKS"):
        os.link = refuse_links
    for call in OS_CALLS:
        points.watch(os, call, call)
    os.write = points.write_in_halves  # type: ignore[assignment]
    sys.path.insert(0, str(RUNNER.parent))
    import psycopg

    from checkpoint.actions import approve
    from checkpoint.approval import naming
    from checkpoint.runtime import Runtime

    if os.environ.get("NO_RENAMES"):
        naming.rename_without_replacing = lambda *_: False
    points.watch(naming, "rename_without_replacing", "rename")
    if not fail_with:
        points.watch(psycopg.Cursor, "execute", "statement")
        points.watch(psycopg.Transaction, "__enter__", "begin")
        points.watch(psycopg.Transaction, "__exit__", "commit")
        points.watch(Runtime, "cache_records", "cache")
    run = approve.run

    def watched_run(*arguments: Any) -> dict[str, Any]:
        with points.request():
            return run(*arguments)

    approve.run = watched_run  # type: ignore[assignment]
    sys.argv = [str(RUNNER)]
    runpy.run_path(str(RUNNER), run_name="__main__")


if __name__ == "__main__":
    main()
