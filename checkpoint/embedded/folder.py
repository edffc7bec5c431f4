"""The folder of a cluster, and what may lie beside it."""

from __future__ import annotations

import os
import stat

from checkpoint.embedded.error import EmbeddedError
from checkpoint.settings import EMBEDDED_PREFIX

ROOT_FOLDER = "/var/lib/checkpoint-manager/pg"
CONTROL_CHARACTERS = frozenset(map(chr, (*range(32), 127)))
PRIVATE = 0o600
ELSEWHERE = "name another folder with DATABASE_URL=embedded:PATH"


def data_folder(database_url: str) -> str:
    """The absolute path, without links, of the cluster that an `embedded:` URL means (contract, section 6).

    `embedded:PATH` is PATH, relative to the current folder, `~` expanded, no other character special. `embedded:` alone
    is a folder of the user's, wherever the process runs: the authority must not depend on the current folder. For root
    it is one and the same whatever XDG_DATA_HOME says, so that sudo does not change it.

    Raises EmbeddedError when no folder follows from it; ValueError for a URL that is not `embedded:`.
    """
    if not database_url.startswith(EMBEDDED_PREFIX):
        raise ValueError(f"not an {EMBEDDED_PREFIX} URL")
    path = database_url.removeprefix(EMBEDDED_PREFIX) or _default_folder()
    if any(character in CONTROL_CHARACTERS for character in path):
        raise EmbeddedError(f"a control character is in the path {path!r}, which PostgreSQL cannot use; {ELSEWHERE}")
    expanded = os.path.expanduser(path)
    if expanded.startswith("~"):
        raise EmbeddedError(f"the home folder in {path!r} is not known; set HOME, or {ELSEWHERE}")
    # Two leading slashes survive normalisation, and would make a second name for the same folder.
    return os.path.realpath("/" + expanded.lstrip("/") if expanded.startswith("/") else expanded)


def _default_folder() -> str:
    if os.geteuid() == 0:
        return ROOT_FOLDER
    base = os.environ.get("XDG_DATA_HOME", "")
    # The XDG rules tell programs to ignore a relative path here.
    return os.path.join(base if os.path.isabs(base) else "~/.local/share", "checkpoint-manager", "pg")


def cluster_version(folder: str) -> int | None:
    """The PostgreSQL major version of the cluster in `folder`; None where a new one may be made.

    Raises EmbeddedError for anything else than a cluster, an empty folder or nothing at all: it is not touched.
    """
    try:
        with open(os.path.join(folder, "PG_VERSION"), encoding="ascii", errors="replace") as file:
            text = file.read(64).strip()
    except NotADirectoryError:
        raise EmbeddedError(f"{folder} is not a folder; {ELSEWHERE}") from None
    except FileNotFoundError:
        if os.path.isdir(folder) and os.listdir(folder):
            raise EmbeddedError(f"{folder} is not empty and no PostgreSQL cluster; {ELSEWHERE}") from None
        if os.path.ismount(folder):  # a complete cluster cannot be moved onto it
            raise EmbeddedError(
                f"{folder} is a mount point; name a folder in it with DATABASE_URL=embedded:PATH"
            ) from None
        return None
    if not text.isdecimal():
        raise EmbeddedError(f"{folder}/PG_VERSION is damaged; restore the cluster from a backup, or {ELSEWHERE}")
    return int(text)


def existing_ancestor(folder: str) -> str:
    """The nearest folder above `folder` that exists."""
    parent = os.path.dirname(folder)
    while not os.path.isdir(parent) and parent != os.path.dirname(parent):
        parent = os.path.dirname(parent)
    return parent


def make_parents(folder: str, mode: int) -> None:
    """Makes the missing folders above `folder`, with `mode` whatever the umask; those that exist stay as they are."""
    parent = os.path.dirname(folder)
    if os.path.isdir(parent):
        return
    make_parents(parent, mode)
    make_folder(parent, mode)


def make_folder(path: str, mode: int) -> None:
    """Makes the folder with exactly `mode`, unless another process was faster."""
    try:
        os.mkdir(path, mode)
    except FileExistsError:
        return
    os.chmod(path, mode)


def open_private(path: str, flags: int) -> int:
    """Opens, or makes, a file of this user's with mode 0600, following no link. Raises EmbeddedError or OSError."""
    descriptor = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid():
        os.close(descriptor)
        raise EmbeddedError(f"{path} belongs to another user; run as that user, or {ELSEWHERE}")
    if stat.S_IMODE(found.st_mode) != PRIVATE:
        os.fchmod(descriptor, PRIVATE)
    return descriptor
