"""A pooler that does not show itself: it passes one server session's pid on, and later another session's replies."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from tests.support.proxy import Proxy

if TYPE_CHECKING:
    import socket

READY = ord("Z")


class Switching(Proxy):
    """Every client has two sessions, of which the first greets it; `switch` turns all of them to their other one.

    It goes by the messages of the protocol and by a server that asks for no password.
    """

    def __init__(self, url: str) -> None:
        self._turn = 0
        super().__init__(url)

    def switch(self) -> None:
        """From the next request on. The clients have to be idle."""
        self._turn += 1

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                servers = (self._connect(), self._connect())
                self._open += [client, *servers]
                threading.Thread(target=self._serve, args=(client, servers), daemon=True).start()

    def _serve(self, client: socket.socket, servers: tuple[socket.socket, socket.socket]) -> None:
        with contextlib.suppress(OSError):
            startup = client.recv(65536)
            for server in reversed(servers):
                server.sendall(startup)
                greeting = _answer(server)
            client.sendall(greeting)
            while request := _whole_request(client):
                server = servers[self._turn % 2]
                server.sendall(request)
                client.sendall(_answer(server))
        for one in (client, *servers):
            one.close()


def _whole_request(client: socket.socket) -> bytes:
    """What the client sends up to a Query, a Sync or its end."""
    request = b""
    while message := _message(client):
        request += message
        if message[:1] in b"QS":
            break
    return request


def _answer(server: socket.socket) -> bytes:
    """What the server sends until it is ready again."""
    answer = b""
    while message := _message(server):
        answer += message
        if message[0] == READY:
            break
    return answer


def _message(source: socket.socket) -> bytes:
    head = _exactly(source, 5)
    return head + _exactly(source, int.from_bytes(head[1:], "big") - 4) if head else b""


def _exactly(source: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = source.recv(count - len(data))
        if not piece:
            return b""
        data += piece
    return data
