"""A network between a worker and PostgreSQL whose failures a test chooses to the reply: cut, gone silent, late."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from typing import TYPE_CHECKING

from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator


class Network(Proxy):
    """Passes everything on until it is told otherwise. One reply is what the server sends at once.

    `refusing` ends every new connection; `delay` is how many seconds each reply is under way; `held` tells that a request
    is being kept back.
    """

    def __init__(self, url: str) -> None:
        self._change = threading.Condition()
        self._links: list[Link] = []
        self._cuts: list[int] = []
        self._silence: int | None = None
        self._late = False
        self.refusing = False
        self.delay = 0.0
        self.held = False
        super().__init__(url)

    def cut_after(self, *replies: int) -> None:
        """The connection breaks with the loss of a reply after so many were passed on; the next number counts from there."""
        with self._change:
            self._cuts = list(replies)

    def silent_after(self, replies: int) -> None:
        """After so many replies nothing passes any more, and nobody is told."""
        with self._change:
            self._silence = replies

    def part(self) -> None:
        """Clients are cut off; the server is not told, and keeps its side of these connections open until `mend`."""
        for link in tuple(self._links):  # not those that come about meanwhile
            link.parted = True
            with contextlib.suppress(OSError):
                link.client.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def late(self) -> Iterator[None]:
        """What clients send arrives when the block ends, whether they still live or not."""
        self._late = True
        yield
        with self._change:
            self._late = False
            self._change.notify_all()

    def mend(self) -> None:
        """Everything passes again; what was under way when it fell silent arrives now."""
        with self._change:
            self._cuts, self._silence, self._late, self.refusing, self.delay = [], None, False, False, 0.0
            for link in self._links:
                link.parted = False
            self._change.notify_all()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.refusing:
                    client.close()
                    continue
                link = Link(client, self._connect())
                self._links.append(link)
                self._open += [link.client, link.server]
                threading.Thread(target=self._carry_requests, args=(link,), daemon=True).start()
                threading.Thread(target=self._carry_replies, args=(link,), daemon=True).start()

    def _carry_requests(self, link: Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.client.recv(1 << 20):
                with self._change:
                    self.held = self._late
                    self._change.wait_for(lambda: self._silence != 0 and not self._late)
                link.server.sendall(data)
        with self._change:
            self._change.wait_for(lambda: not link.parted)
        link.close()

    def _carry_replies(self, link: Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.server.recv(1 << 20):
                if self._is_cut():
                    break
                with self._change:
                    self._change.wait_for(self._may_reply)
                time.sleep(self.delay)
                if not link.parted:
                    link.client.sendall(data)
        link.close()

    def _is_cut(self) -> bool:
        with self._change:
            if self._cuts and self._cuts[0] == 0:
                del self._cuts[0]
                return True
            if self._cuts:
                self._cuts[0] -= 1
            return False

    def _may_reply(self) -> bool:
        if self._silence:
            self._silence -= 1
            return True
        return self._silence is None


class Link:
    """One connection: its two sides, and whether the client's was cut off behind the server's back."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.parted = False

    def close(self) -> None:
        """Ends both sides."""
        for one in (self.client, self.server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
