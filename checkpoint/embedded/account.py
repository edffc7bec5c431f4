"""The account under which the server runs."""

from __future__ import annotations

import os
from errno import ETIMEDOUT
from typing import TYPE_CHECKING, Any

import msgspec

from checkpoint.embedded.error import EmbeddedError
from checkpoint.embedded.folder import ELSEWHERE

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence

SERVICE_ACCOUNTS = ("postgres", "nobody")
# A list of what is let through: a server that may outlive its starter must keep neither the PG* and LC_* variables,
# which change what PostgreSQL does, nor secrets that stand in the starter's environment.
KEPT_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class Account(msgspec.Struct, frozen=True):
    """Whoever owns the cluster and its server. `changed` is true where that is not the user of this process."""

    name: str
    uid: int
    gid: int
    changed: bool

    @property
    def parent_mode(self) -> int:
        """The mode for new folders above the cluster: private, yet another account must be able to pass."""
        return 0o711 if self.changed else 0o700

    def give(self, path: str) -> None:
        """Makes the account the owner of `path`, which this process has just made."""
        if self.changed:
            os.chown(path, self.uid, self.gid)

    def must_enter(self, folder: str) -> None:
        """Raises EmbeddedError when the account cannot enter `folder`. No folder is opened up for it."""
        if self.changed and self.run(["/bin/sh", "-c", 'cd "$1"', "sh", folder], timeout=30).returncode != 0:
            raise EmbeddedError(
                f"PostgreSQL does not run as root, and the account that it runs as, {self.name}, cannot enter "
                f"{folder}; {ELSEWHERE} where it can"
            )

    def run(
        self, command: Sequence[str], *, timeout: float, share: Sequence[int] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Runs a program to its end, out of reach of the terminal's keys, and gives its status and output.

        `share` are file descriptors that the program inherits. Raises OSError when the account cannot run it, which is
        a TimeoutError when it took more than `timeout` seconds.
        """
        import subprocess

        try:
            return subprocess.run(  # noqa: S603 - PostgreSQL's programs and a constant line for sh
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                check=False,
                timeout=timeout,
                pass_fds=share,
                **self._surroundings({}),
            )
        except subprocess.TimeoutExpired:
            raise TimeoutError(ETIMEDOUT, f"{command[0]} did not end in {timeout:.0f} s") from None

    def start(
        self, command: Sequence[str], *, output: int, share: Sequence[int], variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        """Starts a program in a session of its own, which may outlive this process and is reaped when it ends.

        `output` is its stdout and stderr, `share` are further file descriptors that it inherits. It gets no other.
        """
        import subprocess
        import threading

        child = subprocess.Popen(  # noqa: S603 - the postgres program, without a shell
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=share,
            **self._surroundings(variables),
        )
        threading.Thread(target=child.wait, name="embedded-postgres-reaper", daemon=True).start()
        return child

    def _surroundings(self, variables: Mapping[str, str]) -> dict[str, Any]:
        kept = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        options: dict[str, Any] = {
            "env": {"PATH": os.defpath, **kept, "LC_ALL": "C", "TZ": "UTC", **variables},
            "cwd": "/",
            "start_new_session": True,
        }
        if self.changed:
            options |= {"user": self.uid, "group": self.gid, "extra_groups": []}
        return options


def server_account(folder: str) -> Account:
    """The account for the cluster in `folder`: this process's user, or where that is root, a service account.

    An existing cluster keeps its owner. Raises EmbeddedError where that is somebody else.
    """
    import pwd

    try:
        owner: int | None = os.stat(folder).st_uid
    except FileNotFoundError:
        owner = None
    uid = os.geteuid()
    if uid != 0:
        if owner not in (None, uid):
            raise _belongs_to(owner, folder)
        return Account(name=_name(uid), uid=uid, gid=os.getegid(), changed=False)
    for name in SERVICE_ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        # A folder of root's own can only be an empty one: the new cluster takes its place.
        if owner in (None, 0, entry.pw_uid):
            return Account(name=name, uid=entry.pw_uid, gid=entry.pw_gid, changed=True)
    if owner is None:
        raise EmbeddedError(
            "PostgreSQL does not run as root, and there is no account postgres or nobody; start as an ordinary user"
        )
    raise _belongs_to(owner, folder)


def _belongs_to(owner: int | None, folder: str) -> EmbeddedError:
    whom = "another user" if owner is None else _name(owner)
    return EmbeddedError(f"{folder} belongs to {whom}; run as that user, or {ELSEWHERE}")


def _name(uid: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
