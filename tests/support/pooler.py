"""PgBouncer in transaction mode, in front of a server of the tests."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import psycopg

from tests.support.own_server import free_port
from tests.support.process import until

if TYPE_CHECKING:
    import subprocess

    from tests.support.own_server import OwnServer, OwnServers

CONFIGURATION = """
[databases]
* = host=127.0.0.1 port={server} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
pidfile = {place}/pooler.pid
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
"""


def is_installed() -> bool:
    """Whether there is a pgbouncer to start."""
    return _program() is not None


class Pooler:
    """A pooler that runs, with so many connections to the server for all its clients."""

    def __init__(self, servers: OwnServers, server: OwnServer, connections: int) -> None:
        self._servers = servers
        self._child: subprocess.Popen[bytes] | None = None
        port = free_port()
        self._place = servers.place(f"pooler-{port}")
        servers.give(self._place)
        self._configuration = self._place / "pgbouncer.ini"
        self._configuration.write_text(
            CONFIGURATION.format(server=server.port, port=port, connections=connections, place=self._place)
        )
        self.url = f"postgresql://anybody@127.0.0.1:{port}/postgres"
        self.start()

    def start(self) -> None:
        """Starts it and waits until it answers."""
        program = _program()
        assert program is not None
        with (self._place / "log").open("ab") as log:
            self._child = self._servers.run([program, str(self._configuration)], log.fileno())
        until(self._answers, "the pooler answers")

    def kill(self) -> None:
        """SIGKILL; does nothing where it is gone already."""
        assert self._child is not None
        self._child.send_signal(signal.SIGKILL)
        self._child.wait(30)

    def _answers(self) -> bool:
        assert self._child is not None
        assert self._child.poll() is None, (self._place / "log").read_text()
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True


def _program() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")
