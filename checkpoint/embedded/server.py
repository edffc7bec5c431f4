"""The embedded server as its users see it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from checkpoint.embedded.account import server_account
from checkpoint.embedded.cluster import make_cluster
from checkpoint.embedded.error import EmbeddedError
from checkpoint.embedded.folder import ELSEWHERE, cluster_version, existing_ancestor, make_parents
from checkpoint.embedded.lock import Lock
from checkpoint.embedded.postmaster import Postmaster
from checkpoint.embedded.programs import find_programs, reachable_programs
from checkpoint.embedded.unix_socket import UnixSocket

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Mapping

    from checkpoint.embedded.account import Account
    from checkpoint.embedded.unix_socket import Answer

PAUSE = 0.01
# Seconds for which a server may be alive and ready without a socket before it is started anew.
LOST_SOCKET = 5.0
# Seconds of waiting after which the user is told what for.
LONG = 2.0


class EmbeddedServer:
    """One user of the PostgreSQL server of a cluster; the first user starts it, the last one stops it.

    Users are processes, or several objects in one: each holds a shared lock, which ends with its process, however that
    ends. A server whose users were all killed runs on until the next user has come and gone. Threads may share an
    object; a forked child starts as no user. (contract, section 6)

    `folder` is what `data_folder` gave; it is made when needed, private, with its helpers beside it: `.start.lock`,
    `.use.lock`, `.run.lock`, `.log`, and for root perhaps `.bin`. `settings` go to a server that this object starts, on
    top of PostgreSQL's own; one that runs already keeps its settings. `start_timeout` is the patience in seconds of one
    `acquire`, crash recovery included. `notify` is given short sentences on what takes its time.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        settings: Mapping[str, str] = {},
        start_timeout: float = 300.0,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self._folder = os.path.realpath(folder)
        self._settings = dict(settings)
        self._start_timeout = start_timeout
        self._notify = notify or (lambda _sentence: None)
        self._postmaster = Postmaster(self._folder)
        # Order of taking: the start lock before the use lock, or the use lock alone or first but shared. Who holds the
        # use lock exclusively is stopping the server and takes nothing more, so nobody waits in a circle.
        self._start_lock = Lock(f"{self._folder}.start.lock")
        self._use_lock = Lock(f"{self._folder}.use.lock")
        self._process = os.getpid()
        self._threads = threading.Lock()

    def acquire(self) -> str:
        """Starts the server or joins it, and gives the libpq URL of its database `postgres`, over its private socket.

        Called again it makes sure that the server runs, and starts it anew if it died. Raises EmbeddedError: then this
        object is no user. A server that is only slow to recover goes on by itself, and a later call joins it. A frozen
        one is given up after some ten seconds.
        """
        with self._one_thread():
            try:
                return self._acquire(time.monotonic() + self._start_timeout)
            except OSError as error:
                self._use_lock.drop()
                raise EmbeddedError(_refusal(self._folder, error)) from error
            except BaseException:
                self._use_lock.drop()
                raise

    def release(self) -> None:
        """Ends the use. The last user stops the server, which takes some 15 s at most; then it stops by itself.

        Does nothing when there is no use to end.
        """
        with self._one_thread():
            if not self._use_lock.held:
                return
            try:
                if self._use_lock.try_take() and self._postmaster.stop():
                    UnixSocket(self._folder, server_account(self._folder)).remove()
            except OSError as error:
                raise EmbeddedError(_refusal(self._folder, error)) from error
            finally:
                self._use_lock.drop()

    def _one_thread(self) -> threading.Lock:
        if self._process != os.getpid():  # a fork: another thread may have held the lock at that moment
            self._process, self._threads = os.getpid(), threading.Lock()
        return self._threads

    def _acquire(self, deadline: float) -> str:
        account = server_account(self._folder)
        fresh = cluster_version(self._folder) is None
        socket = UnixSocket(self._folder, account)
        if fresh:
            account.must_enter(existing_ancestor(self._folder))
            make_parents(self._folder, account.parent_mode)
        if not self._use_lock.held:
            self._use_lock.take(shared=True, deadline=deadline)
        if self._patient_answer(socket) != "up":
            self._start_lock.take(shared=False, deadline=deadline)
            try:
                self._start(socket, account, deadline)
            finally:
                self._start_lock.drop()
        return socket.url

    def _start(self, socket: UnixSocket, account: Account, deadline: float) -> None:
        """Brings the server up, from whatever state it is in. The caller holds the start lock and the use lock."""
        child = None
        began, told, absent_since = time.monotonic(), False, None
        while (answer := self._patient_answer(socket)) != "up":
            now = time.monotonic()
            if answer != "absent":
                absent_since = None
            elif child is not None and child.poll() is not None:
                raise EmbeddedError(
                    f"PostgreSQL did not start in {self._folder}: {self._postmaster.log.reason()}; "
                    f"the whole story is in {self._postmaster.log.path}"
                )
            elif child is None and self._postmaster.gone():
                child = self._start_process(socket, account, deadline)
                began = time.monotonic()
            else:
                absent_since = absent_since or now
                if now - absent_since > LOST_SOCKET and self._postmaster.says_ready():
                    self._notify(f"the socket of PostgreSQL in {self._folder} is lost; starting PostgreSQL anew")
                    self._postmaster.stop()
            if now >= deadline:
                raise EmbeddedError(
                    f"PostgreSQL in {self._folder} was not ready after {self._start_timeout:g} s; it may still be "
                    f"recovering, so try again later; {self._postmaster.log.path} tells what it does"
                )
            if now - began > LONG and not told:
                told = True
                self._notify(f"waiting for PostgreSQL in {self._folder}")
            time.sleep(PAUSE)

    def _start_process(self, socket: UnixSocket, account: Account, deadline: float) -> subprocess.Popen[bytes] | None:
        version = cluster_version(self._folder)
        account.must_enter(os.path.dirname(self._folder))
        programs = reachable_programs(find_programs(version), account, f"{self._folder}.bin", self._notify)
        if version is None:
            self._notify(f"making a new PostgreSQL cluster in {self._folder}")
            durable = self._settings.get("fsync") != "off"
            timeout = max(1.0, deadline - time.monotonic())
            make_cluster(self._folder, programs, account, self._start_lock, durable=durable, timeout=timeout)
        self._notify(f"starting PostgreSQL in {self._folder}")
        return self._postmaster.start(programs, account, socket, self._settings)

    def _patient_answer(self, socket: UnixSocket) -> Answer:
        """What the server answers. Raises EmbeddedError where it is silent twice."""
        if (answer := socket.ask()) == "silent" and (answer := socket.ask()) == "silent":
            raise EmbeddedError(
                f"PostgreSQL in {self._folder} (process {self._postmaster.pid()}) does not answer; if it is frozen, "
                "let it go on (kill -CONT) or end it (kill -KILL), then try again"
            )
        return answer


def _refusal(folder: str, error: OSError) -> str:
    about = f" ({error.filename})" if error.filename else ""
    return f"{folder} cannot be used: {error.strerror or error}{about}; mend that, or {ELSEWHERE}"
