"""The output file: there whole or not at all, never over another, never through a link (contract, section 5)."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from enum import Enum
from typing import TYPE_CHECKING

from checkpoint.approval import place
from checkpoint.approval.naming import give_name
from checkpoint.approval.newfile import make_file
from checkpoint.folder import in_utf8, make_private

if TYPE_CHECKING:
    from collections.abc import Iterator

LEFT_OVER_SECONDS = 600
READ_BYTES = 1024 * 1024
TRIES = 5

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_EXISTING_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not hold the opening up


class Found(Enum):
    """What stands under the name of an output file."""

    NOTHING = "nothing"
    THE_SAME = "a file with these bytes"
    ANOTHER = "something else"
    LINK = "a link, there or on the way"


class OutputFolder:
    """The artifacts folder. What stands above it is the operator's; below it no link is followed."""

    def __init__(self, root: str) -> None:
        self._root = root

    def path(self, output: str) -> str:
        """The absolute path of an output file, as text that can be answered."""
        return f"{in_utf8(self._root)}/{output}"

    def look(self, output: str, content: bytes = b"") -> Found:
        """What stands there, compared with `content`. Raises OSError where that cannot be seen."""
        *folders, name = _names(output)
        try:
            with self._entered(folders, make=False) as folder:
                return _compare(folder, name, content)
        except (FileNotFoundError, NotADirectoryError):
            return Found.NOTHING
        except _LinkOnTheWay:
            return Found.LINK

    def publish(self, output: str, content: bytes) -> Found:
        """Makes the file with these bytes, or takes over the one that is there with them, so that it lasts.

        Anything but THE_SAME means that nothing was changed. Raises OSError, and then the name is not taken.
        """
        *folders, name = _names(output)
        try:
            with self._entered(folders, make=True) as folder:
                return _publish(folder, name, content)
        except _LinkOnTheWay:
            return Found.LINK

    @contextlib.contextmanager
    def _entered(self, folders: list[bytes], *, make: bool) -> Iterator[int]:
        """A descriptor of the folder that holds the file, opened name by name."""
        if make:
            _make_root(self._root)
        descriptor = os.open(self._root, _FOLDER)
        try:
            for name in folders:
                inner = _enter(descriptor, name, make=make)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)


class _LinkOnTheWay(Exception):
    """A folder of the path is a link."""


def _names(output: str) -> list[bytes]:
    return [name.encode() for name in place.parts(output)]


def _make_root(root: str) -> None:
    missing = root
    while not os.path.lexists(missing):
        missing = os.path.dirname(missing)
    make_private(root)
    while root != missing:
        root = os.path.dirname(root)
        with contextlib.suppress(PermissionError):  # one that may not be read cannot be made to last from here
            _sync(root)


def _sync(path: str) -> None:
    folder = os.open(path, _FOLDER)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _enter(folder: int, name: bytes, *, make: bool) -> int:
    if make:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=folder)
            os.chmod(name, 0o700, dir_fd=folder)  # whatever the umask
            os.fsync(folder)
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(folder, name):
            raise _LinkOnTheWay from None
        raise


def _is_link(folder: int, name: bytes) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _compare(folder: int, name: bytes, content: bytes, *, sync: bool = False) -> Found:
    """What stands under `name`; with `sync` a file with these bytes is also made to last."""
    try:
        descriptor = os.open(name, _EXISTING_FILE, dir_fd=folder)
    except FileNotFoundError:
        return Found.NOTHING
    except OSError as error:
        if error.errno == errno.ELOOP:
            return Found.LINK
        if error.errno == errno.ENXIO:  # a socket
            return Found.ANOTHER
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(content):
            return Found.ANOTHER
        left = memoryview(content)
        while piece := os.read(descriptor, READ_BYTES):
            if piece != left[: len(piece)]:
                return Found.ANOTHER
            left = left[len(piece) :]
        if left:
            return Found.ANOTHER
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return Found.THE_SAME


def _publish(folder: int, name: bytes, content: bytes) -> Found:
    for _ in range(TRIES):
        found = _compare(folder, name, content, sync=True)
        if found is Found.THE_SAME:
            os.fsync(folder)
        if found is not Found.NOTHING:
            return found
        _remove_left_over(folder)
        with _temporary(folder, content) as temporary:
            try:
                give_name(folder, temporary, name, content)
            except FileExistsError:  # somebody was faster; see what it is
                continue
        os.fsync(folder)
        return Found.THE_SAME
    raise OSError(errno.EAGAIN, "the file comes and goes")


@contextlib.contextmanager
def _temporary(folder: int, content: bytes) -> Iterator[bytes]:
    """The name of a new file with these bytes, on the disk; it is gone afterwards."""
    name = f".checkpoint-{secrets.token_hex(8)}.tmp".encode()
    make_file(folder, name, content)
    try:
        yield name
    finally:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)


def _remove_left_over(folder: int) -> None:
    """Temporary files of processes that were killed a good while ago."""
    oldest = time.time() - LEFT_OVER_SECONDS
    for name in os.listdir(folder):
        if place.TEMPORARY.fullmatch(name):
            with contextlib.suppress(OSError):
                if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < oldest:
                    os.unlink(name, dir_fd=folder)
