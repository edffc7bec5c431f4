"""Holds the write lock of a SQLite file: `python -m tests.chaos.locker FILE SECONDS`. Says "locked" once it has it."""

from __future__ import annotations

import sqlite3
import sys
import time
from contextlib import closing

WAIT = 1.0


def main(path: str, seconds: float) -> int:
    """The exit status: 1 where the lock was not to be had."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=WAIT, isolation_level=None)) as file:
            file.execute("BEGIN IMMEDIATE")
            sys.stdout.write("locked\n")
            sys.stdout.flush()
            time.sleep(seconds)
            file.execute("ROLLBACK")
    except sqlite3.Error:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
