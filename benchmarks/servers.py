"""PostgreSQL servers of a run, durable ones: fsync is on, whatever that costs."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec
import psycopg

from checkpoint.embedded import EmbeddedServer
from checkpoint.embedded.account import server_account
from checkpoint.embedded.cluster import make_cluster
from checkpoint.embedded.lock import Lock
from checkpoint.embedded.programs import SYSTEM_FOLDER, Programs

if TYPE_CHECKING:
    from collections.abc import Iterator

LASTING = "/var/tmp"  # a disk, where /tmp may be memory
INITDB_SECONDS = 120.0
ABOUT = """
SELECT current_setting('server_version'), current_setting('fsync') = 'on', current_setting('synchronous_commit'),
       (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression')
"""


class Server(msgspec.Struct, frozen=True):
    """A server that runs. `lz4` tells whether it can compress large values that way."""

    url: str
    name: str
    version: str
    fsync: bool
    synchronous_commit: str
    lz4: bool

    @property
    def about(self) -> str:
        """In a few words."""
        return f"PostgreSQL {self.version} {'with' if self.lz4 else 'without'} lz4"


@contextmanager
def place() -> Iterator[str]:
    """A folder on a disk for all that a run makes, which the account of a server can enter; gone afterwards."""
    usable = os.path.isdir(LASTING) and os.access(LASTING, os.W_OK)
    folder = tempfile.mkdtemp(prefix="checkpoint-bench-", dir=LASTING if usable else None)
    os.chmod(folder, 0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def servers(folder: str, given: str | None) -> Iterator[list[Server]]:
    """The product's own server; one with lz4 if that has none and the system does; and the one given, if any."""
    with ExitStack() as stack:
        started = [stack.enter_context(_own(os.path.join(folder, "pg"), "the product's own"))]
        if not started[0].lz4:
            for programs in _system_programs():
                other = stack.enter_context(_system(os.path.join(folder, f"pg{programs.major}"), programs))
                if other.lz4:
                    started.append(other)
                    break
        if given:
            started.append(asked(given, "BENCH_DATABASE_URL"))
        yield started


def analyze(server: Server) -> None:
    """Makes PostgreSQL take statistics of every table now, as autovacuum does within a minute: plans depend on them."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("ANALYZE")


def asked(url: str, name: str) -> Server:
    """What a server says of itself."""
    with psycopg.connect(url) as connection:
        version, fsync, synchronous_commit, lz4 = connection.execute(ABOUT).fetchone() or ("", False, "", False)
    return Server(url, name, version.split()[0], fsync, synchronous_commit, bool(lz4))


@contextmanager
def _own(folder: str, name: str) -> Iterator[Server]:
    server = EmbeddedServer(folder)
    try:
        yield asked(server.acquire(), name)
    finally:
        server.release()


@contextmanager
def _system(folder: str, programs: Programs) -> Iterator[Server]:
    """A server of the system's PostgreSQL, under the same launcher: it takes the programs that made the cluster."""
    lock = Lock(f"{folder}.start.lock")
    lock.take(shared=False, deadline=float("inf"))
    try:
        make_cluster(folder, programs, server_account(folder), lock, durable=True, timeout=INITDB_SECONDS)
    finally:
        lock.drop()
    with _own(folder, "the system's") as server:
        yield server


def _system_programs() -> Iterator[Programs]:
    versions = os.listdir(SYSTEM_FOLDER) if os.path.isdir(SYSTEM_FOLDER) else []
    for version in sorted((int(name) for name in versions if name.isdecimal()), reverse=True):
        yield Programs(folder=os.path.join(SYSTEM_FOLDER, str(version), "bin"), major=version, package=None)
