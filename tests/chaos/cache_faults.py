"""What accidents do to a cache file while workers use it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.cache_file import COMPANIONS, NAME

if TYPE_CHECKING:
    from random import Random

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = 4096


def delete(folder: Path, random: Random) -> str | None:
    """Deletes the file with its companions, or one of the three; what was deleted, None where nothing was there."""
    chosen = COMPANIONS if random.random() < 0.6 else (random.choice(COMPANIONS),)
    deleted = []
    for suffix in chosen:
        with contextlib.suppress(FileNotFoundError):
            (folder / (NAME + suffix)).unlink()
            deleted.append(NAME + suffix)
    return " ".join(deleted) or None


def overwrite(folder: Path, random: Random) -> str | None:
    """Puts garbage into the file, its -wal, its -shm or all three; None where nothing was there.

    The -shm keeps its size: every process maps it, and a mapping that loses its file's end kills whoever touches it.
    """
    lot = random.random()
    suffixes = ("",) if lot < 0.5 else ("-wal",) if lot < 0.7 else ("-shm",) if lot < 0.8 else COMPANIONS
    done = [told for suffix in suffixes if (told := _overwrite(folder / (NAME + suffix), random))]
    return ", ".join(done) or None


def _overwrite(path: Path, random: Random) -> str | None:
    try:
        size = path.stat().st_size
        with path.open("r+b") as file:
            how = "all" if path.name.endswith("-shm") else random.choice(["all", "page", "page", "start", "cut"])
            if how == "cut":
                file.truncate(random.randrange(size + 1))
            elif how == "page":
                file.seek(random.randrange(size // PAGE + 1) * PAGE)
                file.write(random.randbytes(min(PAGE, size)))
            else:
                file.write(random.randbytes(min(size, 1 << 20) if how == "all" else min(size, PAGE)))
    except FileNotFoundError:
        return None
    return f"{path.name} ({how} of {size} bytes)"


class Lockers:
    """Other processes that take the write lock of cache files for a while."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[bytes]] = []

    def lock(self, folder: Path, random: Random) -> str | None:
        """Returns when the lock is held, for how long it will be; None where it was not to be had."""
        seconds = random.uniform(0.05, 1.2)
        path = folder / NAME
        if not path.exists():
            return None
        command = [sys.executable, "-m", "tests.chaos.locker", str(path), str(seconds)]
        process = subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE)
        self._processes.append(process)
        assert process.stdout is not None
        with process.stdout:
            locked = process.stdout.readline() == b"locked\n"
        return f"for {seconds:.2f} s" if locked else None

    def wait(self) -> None:
        """Until none of them holds a lock."""
        for process in self._processes:
            process.wait()
