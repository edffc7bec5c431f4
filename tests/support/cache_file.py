"""The cache file, seen and disturbed from outside, as another process or an accident does."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "cache.db"
COMPANIONS = ("", "-wal", "-shm")
GARBAGE = b"no database, but it is here.\n" * 4000


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    """The test's own connection; it makes no file where there is none."""
    name = f"file:{folder / NAME}?mode=rw"
    with closing(sqlite3.connect(name, uri=True, isolation_level=None, timeout=10)) as connection:
        yield connection


@contextmanager
def write_locked(folder: Path) -> Iterator[None]:
    """Another connection holds the write lock inside the block."""
    with opened(folder) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


def query(folder: Path, statement: str, *values: object) -> list[Any]:
    """Rows of a statement of the test's own; a change is committed at once."""
    with opened(folder) as connection:
        return connection.execute(statement, values).fetchall()


def cached_state(folder: Path, workflow_id: str, step_id: str) -> Any:
    """The state that the file holds under a key, read as JSON, whatever may be served of it; None where there is none."""
    statement = "SELECT state_data FROM checkpoint_cache WHERE workflow_id = ? AND step_id = ?"
    rows = query(folder, statement, workflow_id, step_id)
    return json.loads(rows[0][0]) if rows and rows[0][0] is not None else None


def until_cached(folder: Path, workflow_id: str, step_id: str, state: Any) -> None:
    """Waits until there is a file and it holds this state under the key; None: until it holds none."""

    def holds_it() -> bool:
        try:
            return bool(cached_state(folder, workflow_id, step_id) == state)
        except sqlite3.OperationalError:  # no file, or not this one, at this moment
            return False

    until(holds_it, f"{step_id} is cached as {state!r:.80}")


def overwrite(path: Path, content: bytes = GARBAGE) -> None:
    """Puts other bytes into the same file, in place."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def replace(path: Path, content: bytes) -> None:
    """Puts another file in the place of this one."""
    other = path.with_name("other")
    other.write_bytes(content)
    other.rename(path)


def settled(folder: Path) -> bytes:
    """The content of the file after all of the -wal has been moved into it."""
    (outcome,) = query(folder, "PRAGMA wal_checkpoint(TRUNCATE)")
    assert outcome[0] == 0, "a reader or writer held the checkpoint up"
    return (folder / NAME).read_bytes()


def moved_aside(folder: Path) -> list[Path]:
    """The damaged files that were moved out of the way, without their companions."""
    found = [path for path in folder.iterdir() if path.name.startswith(f"{NAME}.corrupt-")]
    return sorted(path for path in found if not path.name.endswith(("-wal", "-shm")))


def places_without_cache(folder: Path) -> dict[str, Path]:
    """Data folders, below `folder`, in which nobody can make a cache file."""
    folder.mkdir(parents=True)
    places = {"below a regular file": folder / "file" / "data", "a folder named cache.db": folder / "taken"}
    (folder / "file").write_bytes(b"")
    (folder / "taken" / NAME).mkdir(parents=True)
    if os.geteuid() != 0:  # root writes whatever the bits say
        places["read-only"] = folder / "read-only"
        places["read-only"].mkdir(mode=0o500)
    return places
