"""What a process holds, as the system tells it: memory, open files, threads, files on disk."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.cache_file import NAME

if TYPE_CHECKING:
    from tests.support.database import Connection


class Holdings(NamedTuple):
    """At one moment, while the process waits for requests."""

    resident_bytes: int
    open_files: int
    threads: int
    sessions: int
    files_on_disk: int
    reports: int


def holdings(pid: int, folder: Path, admin: Connection, name: str) -> Holdings:
    """The holdings of the process with that data folder; `name` is the application_name of its PostgreSQL sessions."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    found = re.search(r"VmRSS:\s+(\d+) kB\n(?:.*\n)*Threads:\s+(\d+)", status)
    assert found is not None, status
    row = admin.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (name,)).fetchone()
    assert row is not None
    reports = folder / "reports"
    return Holdings(
        resident_bytes=int(found[1]) * 1024,
        open_files=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(found[2]),
        sessions=row[0],
        files_on_disk=sum(len(files) for place, _, files in os.walk(folder) if Path(place) != reports),
        reports=len({name.partition(".")[0] for name in os.listdir(reports)}),  # a report and its page share a name
    )


def cache_bytes(folder: Path) -> tuple[int, int]:
    """The size of the cache file, and of its -wal."""
    sizes = []
    for suffix in ("", "-wal"):
        try:
            sizes.append((folder / (NAME + suffix)).stat().st_size)
        except FileNotFoundError:
            sizes.append(0)
    return sizes[0], sizes[1]
