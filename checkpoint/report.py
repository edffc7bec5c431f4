"""The report of a verification: JSON with every difference, and a page about it, each whole or absent (contract 3)."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time
from collections import Counter
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any

import msgspec

from checkpoint import report_page
from checkpoint.comparison import KINDS
from checkpoint.folder import make_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from checkpoint.comparison import Difference

KEEP = 50
LISTED = 1000
SPOOL_BYTES = 1024 * 1024
_OURS = re.compile(r"verify-\d{8}T\d{6}Z-\d{9}-[0-9a-f]{8}\.(json|html)(\.tmp)?").fullmatch


class Report:
    """Collects differences: all of them, in memory or in `folder`, and the first 1000 of each kind for the answer."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._failure: OSError | None = None
        self.counts = dict.fromkeys(KINDS, 0)
        self.listed: dict[str, list[dict[str, str]]] = {kind: [] for kind in KINDS}
        self._reasons: Counter[str] = Counter()
        try:
            make_private(folder)
        except OSError as error:
            self._failure = error
        self._spools = {kind: SpooledTemporaryFile(SPOOL_BYTES, dir=folder) for kind in KINDS}  # noqa: SIM115 - they go with the report

    def add(self, difference: Difference) -> None:
        """Takes one more difference; they come in key order."""
        kind = difference.kind
        item = difference.item()
        if self._failure is None:
            try:
                self._spools[kind].write((b",\n" if self.counts[kind] else b"") + msgspec.json.encode(item))
            except OSError as error:  # the counts and the first differences can be told all the same
                self._failure = error
        self.counts[kind] += 1
        if difference.reason is not None:
            self._reasons[difference.reason] += 1
        if self.counts[kind] <= LISTED:
            self.listed[kind].append(item)

    def write(self, summary: dict[str, Any]) -> str:
        """Writes `summary` and all differences into the folder; the absolute path. Raises OSError.

        Beside it, under the same name with `.html`, comes a page for people, unless there is no room for it.
        """
        if self._failure is not None:
            raise self._failure
        seconds, fraction = divmod(time.time_ns(), 10**9)
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(seconds))
        name = os.path.join(self._folder, f"verify-{stamp}-{fraction:09d}-{secrets.token_hex(4)}")
        path = f"{name}.json"
        _write_whole(path, self._pieces(summary))
        with contextlib.suppress(OSError):  # the JSON is the report, and it is there
            _write_whole(f"{name}.html", report_page.pieces(summary, self._reasons, self._items(), path))
        _sync_folder(self._folder)
        _keep_newest(self._folder, _report_of(os.path.basename(path)))
        return path

    def _pieces(self, summary: dict[str, Any]) -> Iterator[bytes]:
        yield msgspec.json.encode(summary)[:-1] + b',\n"mismatches":{'
        for number, kind in enumerate(KINDS):
            yield (b"],\n" if number else b"\n") + msgspec.json.encode(kind) + b":[\n"
            spool = self._spools[kind]
            spool.seek(0)
            while piece := spool.read(SPOOL_BYTES):
                yield piece
        yield b"]}}\n"

    def _items(self) -> dict[str, Iterator[bytes]]:
        """The differences of each kind once more, one by one."""
        return {kind: _lines(spool) for kind, spool in self._spools.items()}


def _lines(spool: IO[bytes]) -> Iterator[bytes]:
    spool.seek(0)
    for line in spool:
        yield line.rstrip(b",\n")


def _write_whole(path: str, pieces: Iterable[bytes]) -> None:
    """Writes a private file that is complete, or not there, at every moment. Raises OSError."""
    temporary = f"{path}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, 0o600)
            file.writelines(pieces)
            file.flush()
            os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _sync_folder(folder: str) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep_newest(folder: str, written: str) -> None:
    """A report and its page, which share a name, come and go together; the one just written stays in any case."""
    names = [name for name in os.listdir(folder) if _OURS(name)]
    kept = {written, *sorted({_report_of(name) for name in names} - {written})[1 - KEEP :]}
    for name in names:
        if _report_of(name) not in kept:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _report_of(name: str) -> str:
    return name.partition(".")[0]
