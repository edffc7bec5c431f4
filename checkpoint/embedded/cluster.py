"""A new cluster, which exists whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from checkpoint.embedded.error import EmbeddedError
from checkpoint.embedded.folder import ELSEWHERE, make_folder
from checkpoint.embedded.server_log import reason

if TYPE_CHECKING:
    from checkpoint.embedded.account import Account
    from checkpoint.embedded.lock import Lock
    from checkpoint.embedded.programs import Programs

# Sessions come through the private socket alone. Were TCP turned on, it would ask for a password.
OPTIONS = (
    *("--username=postgres", "--auth-local=trust", "--auth-host=scram-sha-256"),
    *("--encoding=UTF8", "--locale=C", "--data-checksums"),
)
# One collation on every machine, with upper and lower case beyond ASCII.
BUILTIN_LOCALE = ("--locale-provider=builtin", "--builtin-locale=C.UTF-8")
BUILTIN_LOCALE_SINCE = 17


def make_cluster(
    folder: str, programs: Programs, account: Account, start_lock: Lock, *, durable: bool, timeout: float
) -> None:
    """Makes the cluster beside its place and moves it there when it is complete.

    An initdb that outlives a killed starter keeps `start_lock`, so that nobody clears its folder from under it.
    Raises EmbeddedError or OSError; then nothing is left, and `folder` is as it was.
    """
    import shutil

    unfinished = f"{folder}.initdb-unfinished"
    if os.path.lexists(unfinished):
        shutil.rmtree(unfinished)
    new = os.path.join(unfinished, "cluster")
    locale = BUILTIN_LOCALE if programs.major >= BUILTIN_LOCALE_SINCE else ()
    try:
        make_folder(unfinished, 0o700)
        account.give(unfinished)
        done = account.run(
            [programs.path("initdb"), "-D", new, *OPTIONS, *locale, *(() if durable else ("--no-sync",))],
            timeout=timeout,
            share=[start_lock.descriptor],
        )
        if done.returncode != 0:
            raise EmbeddedError(
                f"PostgreSQL's initdb could not make a cluster for {folder}: {reason(done.stdout + done.stderr)}; "
                f"mend that, or {ELSEWHERE}"
            )
        os.rename(new, folder)  # onto nothing, or onto an empty folder
        if durable:
            _sync_folder(os.path.dirname(folder))
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _sync_folder(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
