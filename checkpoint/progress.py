"""How far a long action has come, told to whoever watches (`rebuild` and `verify`).

A door that has someone watching sets `Runtime.progress` before it serves the request and takes it back afterwards. What
it sets must be quick, must not raise, and is called on the thread that serves the request.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

Progress = Callable[[str, int, "int | None"], None]
"""Takes the action, the rows done, and the rows there are: None until the last call, where it is the rows done.

A read that had to begin anew, as after a lost connection, counts from 0 again.
"""

EVERY_ROWS = 1000
EVERY_SECONDS = 1.0
STDERR = 2

Row = TypeVar("Row")


def watched(rows: Iterator[Row], action: str, progress: Progress) -> Iterator[Row]:
    """The same rows; `progress` is told of every 1000th, and once more at the end."""
    done = 0
    for row in rows:
        if done and done % EVERY_ROWS == 0:
            progress(action, done, None)
        yield row
        done += 1
    progress(action, done, done)


def on_terminal(descriptor: int = STDERR) -> Progress | None:
    """Lines on a terminal, none in the first second and one a second after it; None where nobody looks.

    A terminal that takes nothing at the moment gets nothing, so that no answer waits for it.
    """
    try:  # opened anew, since what is set on a descriptor holds for all who share it
        terminal = os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    last = 0.0

    def write(action: str, done: int, total: int | None) -> None:
        nonlocal last
        now = time.monotonic()
        if done <= EVERY_ROWS:
            last = now
        elif total is None and now - last >= EVERY_SECONDS:
            last = now
            with contextlib.suppress(OSError):
                os.write(terminal, f"{action}: {done} rows so far\n".encode())

    return write
