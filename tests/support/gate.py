"""A network whose replies the test holds back, cuts off after some bytes, or ends altogether."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING

from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator


class Gate(Proxy):
    """Passes everything on until it is told otherwise."""

    def __init__(self, url: str) -> None:
        self._passing = threading.Event()
        self._passing.set()
        self._held_up_to = 0
        self._limit: int | None = None
        self._cuts = 0
        super().__init__(url)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Inside the block requests arrive, but no reply comes back on connections that are there already."""
        self._held_up_to += 1
        self._passing.clear()
        try:
            yield
        finally:
            self._passing.set()

    @contextlib.contextmanager
    def cut_after(self, reply_bytes: int, times: int) -> Iterator[None]:
        """Inside the block a connection breaks when so many bytes of replies have come; that many connections do."""
        self._limit, self._cuts = reply_bytes, times
        try:
            yield
        finally:
            self._limit = None

    def close(self) -> None:
        """Nobody is there any more: connections end, and new ones are refused."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # a close alone would let the accept under way go on
        self._passing.set()
        super().close()

    def _pass_on(self, source: socket.socket, target: socket.socket, replies: bool) -> None:
        born, passed = self._held_up_to, 0
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if replies:
                    if born < self._held_up_to:
                        self._passing.wait()
                    passed += len(data)
                    if self._limit is not None and passed > self._limit and self._cuts > 0:
                        self._cuts -= 1
                        break
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
