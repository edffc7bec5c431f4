"""What the system tells about another process."""

from __future__ import annotations

import array
import fcntl
import re
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 30.0


class HasFileno(Protocol):
    """An open file."""

    def fileno(self) -> int:
        """Its descriptor."""


def peak_memory(pid: int) -> int:
    """The most memory that the process ever held, in bytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None, status
    return int(found[1]) * 1024


def bytes_in(pipe: HasFileno) -> int:
    """How many bytes a pipe holds that nobody has read, seen from either of its ends."""
    size = array.array("i", [0])
    fcntl.ioctl(pipe.fileno(), termios.FIONREAD, size)
    return size[0]


def until(condition: Callable[[], object], what: str, patience: float = PATIENCE) -> None:
    """Waits for a condition to become true; AssertionError with `what` was waited for, if it never does."""
    deadline = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.01)
