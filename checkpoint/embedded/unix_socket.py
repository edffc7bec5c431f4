"""The private unix socket through which the server is reached."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, Literal

from checkpoint.embedded.error import EmbeddedError
from checkpoint.embedded.folder import make_folder

if TYPE_CHECKING:
    import socket

    from checkpoint.embedded.account import Account

# A server's state as its socket tells it: takes connections; is there but starts, recovers or stops; is there but
# says nothing, as a frozen one does; nobody listens.
Answer = Literal["up", "busy", "silent", "absent"]

PORT = 5432  # only a part of the socket's file name: the server does not listen on TCP
SILENCE = 5.0
# A socket's path is at most 107 bytes long on Linux, 103 on macOS; "/.s.PGSQL.5432" takes 14 of them.
LONGEST_FOLDER = 88
SHORT_BASE = "/tmp"  # noqa: S108 - the folder made in it must prove to be private
LARGEST_ANSWER = 65536


class UnixSocket:
    """The socket of the cluster in `folder`, which only the server's account and root can reach."""

    def __init__(self, folder: str, account: Account) -> None:
        self._account = account
        self._own_folder = not _fits(folder)
        self.folder = _short_folder(folder, account.uid) if self._own_folder else folder
        self._path = os.path.join(self.folder, f".s.PGSQL.{PORT}")

    @property
    def url(self) -> str:
        """The libpq URL of the database `postgres`."""
        from urllib.parse import quote

        return f"postgresql://postgres@/postgres?host={quote(os.fsencode(self.folder), safe='/')}&port={PORT}"

    def prepare(self) -> None:
        """Makes the folder and clears what a dead server left in it. The caller knows that no server runs."""
        if self._own_folder and not os.path.lexists(self.folder):
            make_folder(self.folder, 0o700)
            self._account.give(self.folder)
        self._must_be_private()
        for leftover in (self._path, f"{self._path}.lock"):
            try:
                os.unlink(leftover)
            except FileNotFoundError:
                continue

    def remove(self) -> None:
        """Removes the folder, if it is there for the socket alone and the server has cleared it."""
        if self._own_folder:
            try:
                os.rmdir(self.folder)
            except OSError:
                return

    def ask(self) -> Answer:
        """How the server answers a new connection, within some seconds whatever it does.

        This is what libpq's PQping does, but that one blocks every thread, in a Python process, for as long as a frozen
        server lets it wait. Raises EmbeddedError when others could have put a socket there.
        """
        import socket

        if not os.path.lexists(self._path):
            return "absent"
        self._must_be_private()
        deadline = time.monotonic() + SILENCE
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(SILENCE)
            try:
                connection.connect(self._path)
                connection.sendall(_hello_and_goodbye())
            except (BlockingIOError, TimeoutError):  # its queue of connections is full
                return "silent"
            except OSError:
                return "absent"
            answer = _read(connection, deadline)
        if not answer:
            return "silent" if time.monotonic() >= deadline else "absent"
        # An error other than 57P03, cannot_connect_now, is one of a server that serves.
        return "busy" if answer.startswith(b"E") and b"\0C57P03\0" in answer else "up"

    def _must_be_private(self) -> None:
        found = os.lstat(self.folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != self._account.uid or found.st_mode & 0o077:
            raise EmbeddedError(
                f"{self.folder} is not a private folder of {self._account.name}; "
                "set its owner and mode 0700, or remove it"
            )


def _fits(folder: str) -> bool:
    # A comma separates folders for PostgreSQL, and hosts for libpq. White space at the end is lost on PostgreSQL.
    return len(os.fsencode(folder)) <= LONGEST_FOLDER and "," not in folder and not folder[-1:].isspace()


def _short_folder(folder: str, uid: int) -> str:
    from hashlib import sha256

    return os.path.join(SHORT_BASE, f"checkpoint-pg-{uid}-{sha256(os.fsencode(folder)).hexdigest()[:16]}")


def _hello_and_goodbye() -> bytes:
    """The start of a session (protocol 3.0), and its end at once, so that the server logs nothing."""
    words = b"user\0postgres\0database\0postgres\0application_name\0checkpoint-manager\0\0"
    return (len(words) + 8).to_bytes(4, "big") + (3 << 16).to_bytes(4, "big") + words + b"X\0\0\0\4"


def _read(connection: socket.socket, deadline: float) -> bytes:
    """What comes until the server closes or the deadline passes."""
    answer = b""
    while len(answer) < LARGEST_ANSWER and (left := deadline - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            piece = connection.recv(LARGEST_ANSWER)
        except OSError:
            break
        if not piece:
            break
        answer += piece
    return answer
