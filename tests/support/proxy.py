"""A network between a worker and PostgreSQL that can fail in the middle of a statement."""

from __future__ import annotations

import contextlib
import socket
import threading

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo


class Proxy:
    """Listens on a port of its own and passes everything on to the server of `url`, until it is told otherwise."""

    def __init__(self, url: str) -> None:
        with psycopg.connect(url) as connection:
            self._host, self._port = connection.info.host, connection.info.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._lose_replies = threading.Event()
        self._open: list[socket.socket] = []
        port = self._listener.getsockname()[1]
        settings = {**conninfo_to_dict(url), "host": "127.0.0.1", "port": port, "sslmode": "disable"}
        self.url = make_conninfo("", **settings)
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_replies(self) -> None:
        """What the client sends still arrives; the next reply and its connection are lost; no new one comes about."""
        self._lose_replies.set()

    def close(self) -> None:
        """Ends every connection."""
        self._listener.close()
        for one in self._open:
            _shut(one)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._lose_replies.is_set():
                    client.close()
                    continue
                server = self._connect()
                self._open += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass_on, args=(server, client, True), daemon=True).start()

    def _connect(self) -> socket.socket:
        if self._host.startswith("/"):
            server = socket.socket(socket.AF_UNIX)
            server.connect(f"{self._host}/.s.PGSQL.{self._port}")
            return server
        return socket.create_connection((self._host, self._port))

    def _pass_on(self, source: socket.socket, target: socket.socket, replies: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if replies and self._lose_replies.is_set():
                    break
                target.sendall(data)
        _shut(source)
        _shut(target)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
