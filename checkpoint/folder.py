"""Folders of the product's own: private, whatever the umask (contract, section 6)."""

from __future__ import annotations

import contextlib
import os


def in_utf8(path: str) -> str:
    """The path as text that an answer can carry, whatever the locale made of its bytes."""
    return os.fsencode(path).decode("utf-8", "replace")


def make_private(path: str) -> None:
    """Makes a folder, and those above it, that only the owner enters; what is there stays as it is. Raises OSError."""
    if os.path.isdir(path):
        return
    parent = os.path.dirname(path)
    if parent != path:
        make_private(parent)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
        os.chmod(path, 0o700)
