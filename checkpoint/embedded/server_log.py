"""The file that takes what the server says."""

from __future__ import annotations

import os

from checkpoint.embedded.folder import open_private

LARGEST = 4 << 20
TAIL = 65536


class ServerLog:
    """A log file beside the cluster, private, and cut when the server starts: one older file of the kind is kept."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._start = 0

    def open(self) -> int:
        """A file descriptor to write with. What `reason` tells begins here."""
        descriptor = open_private(self.path, os.O_WRONLY | os.O_APPEND)
        if os.fstat(descriptor).st_size > LARGEST:
            os.close(descriptor)
            os.replace(self.path, f"{self.path}.1")
            descriptor = open_private(self.path, os.O_WRONLY | os.O_APPEND)
        self._start = os.fstat(descriptor).st_size
        return descriptor

    def reason(self) -> str:
        """The last serious thing that was logged since `open`."""
        with open(self.path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(self._start, file.tell() - TAIL))
            return reason(file.read().decode("utf-8", "replace"))


def reason(output: str) -> str:
    """The line of a PostgreSQL program's output that tells why it failed, without its prefix."""
    # What a server that starts or stops answers to a new connection is no reason for anything.
    lines = [line.strip() for line in output.splitlines() if line.strip() and "the database system is" not in line]
    for mark in ("PANIC:", "FATAL:", "error:", "ERROR:", "could not"):
        told = [line for line in lines if mark in line]
        if told:
            return told[-1][told[-1].index(mark) :].removeprefix(mark).strip()
    return lines[-1] if lines else "no reason given"
