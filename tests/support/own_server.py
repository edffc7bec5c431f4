"""PostgreSQL servers of a test's own, on loopback: they may be stopped, frozen, killed and promoted."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg

from checkpoint.embedded.account import server_account
from checkpoint.embedded.programs import find_programs, reachable_programs
from tests.support.database import Connection, connection
from tests.support.process import until

if TYPE_CHECKING:
    from collections.abc import Mapping

FAST = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "deadlock_timeout": "100ms",
    "dynamic_shared_memory_type": "mmap",  # in the cluster, so that a killed server leaves nothing elsewhere
}
INITDB = ("-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--wal-segsize=1")
INITDB_SECONDS = 120
# Waits for the end of its input, which is the end of the tests however they end, and clears up what they left.
GUARD = """cat >/dev/null
[ -d "$0" ] || exit 0
each() { for file in "$0"/*/*.pid; do [ -f "$file" ] && read -r pid <"$file" && kill "$1" "$pid"; done; }
each -CONT; each -QUIT; sleep 2; each -KILL; rm -rf "$0"
"""
MEMORY = Path("/dev/shm")
ROOM = 2 * 1024**3
WITH_PASSWORD = "with_password"  # the one role that needs one; all others are trusted


class OwnServer:
    """One server and its folder. `settings` are given at every start."""

    def __init__(self, cluster: Path, place: OwnServers, settings: Mapping[str, str]) -> None:
        self._place = place
        self.settings = {**FAST, **settings}
        self.folder = cluster
        self.port = free_port()
        self._child: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    @property
    def url(self) -> str:
        """The libpq URL of its database postgres, as a superuser."""
        return self.role_url("postgres")

    def start(self) -> None:
        """Starts it and waits until it answers, a standby included."""
        self._child = self._place.spawn(self)
        until(self._answers, "the server of the test answers")

    def stop_at_once(self) -> None:
        """Immediate mode: sessions are thrown out, nothing is written out, the next start recovers."""
        self._end(signal.SIGQUIT)

    def kill(self) -> None:
        """SIGKILL to the postmaster; the others notice that and end."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """SIGSTOP to every process: the kernel still takes connections and data, and nothing answers."""
        _signal(self._pid(), signal.SIGSTOP)  # first, so that it starts no others
        for pid in self._children():
            _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """SIGCONT to every process."""
        for pid in [*self._children(), self._pid()]:
            _signal(pid, signal.SIGCONT)

    def role_url(self, role: str, database: str = "postgres", password: str | None = None) -> str:
        """The libpq URL of a database of it, as that role."""
        who = role if password is None else f"{role}:{password}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{database}"

    def query(self, statement: str, url: str | None = None) -> list[tuple[Any, ...]]:
        """Rows of a statement of the test's own, as a superuser on a kept connection, or on a new one to `url`."""
        if url is not None:
            with connection(url) as other:
                return _rows(other, statement)
        try:
            return _rows(self._kept(), statement)
        except psycopg.OperationalError:
            if not self._kept().broken:
                raise
            self._close()  # the server had ended it
            return _rows(self._kept(), statement)

    def alter(self, **settings: str | None) -> None:
        """Changes settings while it runs, and waits until new sessions have them; None sets one back."""
        with connection(self.url) as other:
            other.execute("SET default_transaction_read_only = off")
            other.execute("SET idle_session_timeout = 0")
            for name, value in settings.items():
                change = f"RESET {name}" if value is None else f"SET {name} = '{value}'"
                other.execute(f"ALTER SYSTEM {change}")
            before = self.query("SELECT extract(epoch FROM pg_conf_load_time())", self.url)
            other.execute("SELECT pg_reload_conf()")
        until(
            lambda: self.query("SELECT extract(epoch FROM pg_conf_load_time())", self.url) != before,
            "the settings are in force",
        )

    def promote(self) -> None:
        """Makes a standby a primary, and returns when it takes writes."""
        assert self.query("SELECT pg_promote(true, 30)") == [(True,)]

    def end(self) -> None:
        """Ends it, in whatever state it is."""
        self._close()
        if self._child is not None and self._child.poll() is None:
            self.thaw()
            self.stop_at_once()

    def _end(self, how: signal.Signals) -> None:
        self._close()
        children = self._children()
        os.kill(self._pid(), how)
        assert self._child is not None
        self._child.wait(30)
        until(lambda: not any(_lives(pid) for pid in children), "every process of the server is gone")

    def _answers(self) -> bool:
        assert self._child is not None
        assert self._child.poll() is None, (self.folder.parent / f"{self.folder.name}.log").read_text()
        try:
            psycopg.connect(self.url, connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _kept(self) -> Connection:
        if self._connection is None:
            self._connection = psycopg.connect(self.url, autocommit=True)
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    def _children(self) -> list[int]:
        return [int(entry.name) for entry in Path("/proc").iterdir() if _parent(entry) == self._pid()]


class OwnServers:
    """Makes servers, in memory where there is room, else below `folder`; their clusters are copies of one."""

    def __init__(self, folder: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="checkpoint-servers-", dir=_in_memory() or folder))
        self._folder.chmod(0o711)
        self._account = server_account(str(self._folder / "template"))
        copies = str(folder / f"{self._folder.name}-bin")
        self._programs = reachable_programs(find_programs(None), self._account, copies, lambda _sentence: None)
        self._servers: list[OwnServer] = []
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self._folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def new(self, settings: Mapping[str, str] | None = None, *, standby_of: OwnServer | None = None) -> OwnServer:
        """A server that has not been started. A standby is made while its primary is as new as itself."""
        cluster = self._folder / f"cluster-{len(self._servers)}"
        shutil.copytree(self._template(), cluster)
        if standby_of is not None:
            (cluster / "standby.signal").touch()
            source = f"host=127.0.0.1 port={standby_of.port} user=postgres application_name=standby"
            settings = {**(settings or {}), "primary_conninfo": source}
        for path in [cluster, *cluster.rglob("*")]:
            os.chown(path, self._account.uid, self._account.gid)
        server = OwnServer(cluster, self, settings or {})
        self._servers.append(server)
        return server

    def spawn(self, server: OwnServer) -> subprocess.Popen[bytes]:
        """Starts the process of a server."""
        chosen = {
            **server.settings,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "port": str(server.port),
        }
        words = [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / f"{server.folder.name}.log").open("ab") as log:
            return self.run([self._programs.path("postgres"), "-D", str(server.folder), *words], log.fileno())

    def run(self, command: list[str], output: int) -> subprocess.Popen[bytes]:
        """Starts a program under the account of the servers."""
        return self._account.start(command, output=output, share=(), variables={})

    def place(self, name: str) -> Path:
        """A new, empty folder beside the clusters."""
        place = self._folder / name
        place.mkdir(mode=0o755)
        return place

    def give(self, path: Path) -> None:
        """Makes the account of the servers the owner of what the test has made."""
        self._account.give(str(path))

    def end(self) -> None:
        """Ends every server and removes what they left."""
        for server in self._servers:
            server.end()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._guard.communicate()

    def _template(self) -> Path:
        template = self._folder / "template"
        if not template.exists():
            template.mkdir(mode=0o700)
            self._account.give(str(template))
            command = [self._programs.path("initdb"), "-D", str(template), *INITDB]
            done = self._account.run(command, timeout=INITDB_SECONDS)
            assert done.returncode == 0, done.stderr
            rules = template / "pg_hba.conf"
            rules.write_text(f"host all {WITH_PASSWORD} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        return template


def _rows(connection: Connection, statement: str) -> list[tuple[Any, ...]]:
    cursor = connection.execute(statement.encode())
    return [] if cursor.description is None else cursor.fetchall()


def _in_memory() -> Path | None:
    """A folder whose files need no disk: some take seconds to give a gigabyte of deleted files back."""
    try:
        return MEMORY if shutil.disk_usage(MEMORY).free > ROOM else None
    except OSError:
        return None


def free_port() -> int:
    """A TCP port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _parent(entry: Path) -> int | None:
    try:
        return int((entry / "stat").read_text(encoding="latin-1").rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="latin-1").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
