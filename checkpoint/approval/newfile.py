"""A new file of a folder: private, on the disk, and never in the place of another (contract, section 5)."""

from __future__ import annotations

import contextlib
import os

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make_file(folder: int, name: bytes, content: bytes) -> None:
    """Makes the file and sees it to the disk. Raises FileExistsError, and OSError; the file is not there then."""
    descriptor = os.open(name, _FLAGS, 0o600, dir_fd=folder)
    try:
        _fill(descriptor, content)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise


def _fill(descriptor: int, content: bytes) -> None:
    try:
        os.fchmod(descriptor, 0o600)  # whatever the umask
        left = memoryview(content)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
