"""The server process of a cluster."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from checkpoint.embedded.lock import Lock
from checkpoint.embedded.server_log import ServerLog
from checkpoint.embedded.unix_socket import PORT

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping

    from checkpoint.embedded.account import Account
    from checkpoint.embedded.programs import Programs
    from checkpoint.embedded.unix_socket import UnixSocket

# Moderate, and without TCP. What makes commits durable is left as PostgreSQL has it: on.
SETTINGS = {"listen_addresses": "", "max_connections": "100", "log_checkpoints": "off", "logging_collector": "off"}
# How the server is asked to stop, and the seconds it is given: "fast", which ends sessions and writes everything out;
# then "immediate", which leaves the rest to recovery at the next start.
STOPS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0))
PAUSE = 0.01


class Postmaster:
    """Starts, finds and stops the server of the cluster in `folder`.

    Every process of the server, orphans of a killed one too, holds `run_lock`, which it inherited. So whether one is
    left is known without guessing from process ids, in another pid namespace on the same folder too.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._pid_file = os.path.join(folder, "postmaster.pid")
        self._run_lock = Lock(f"{folder}.run.lock")
        self.log = ServerLog(f"{folder}.log")

    def pid(self) -> int | None:
        """The process id, if there is a live server process; a number that another process took over does not count."""
        written = self._written_pid()
        return written if written is not None and _is_postmaster(written, self._folder) else None

    def says_ready(self) -> bool:
        """Whether a live server has written down that it takes connections."""
        return self.pid() is not None and self._pid_lines()[7:8] == ["ready"]

    def gone(self) -> bool:
        """Whether no process of the server is left."""
        if not self._run_lock.try_take():
            return False
        self._run_lock.drop()
        return self.pid() is None

    def start(
        self, programs: Programs, account: Account, socket: UnixSocket, settings: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | None:
        """Starts the server process, which then takes its time; None while processes of an earlier one are left.

        `settings` are added to SETTINGS. The caller holds the start lock. Raises OSError or EmbeddedError.
        """
        if not self._run_lock.try_take():
            return None
        try:
            if self.pid() is not None:
                return None
            socket.prepare()
            chosen = {**SETTINGS, **settings, "unix_socket_directories": socket.folder, "port": str(PORT)}
            output = self.log.open()
            try:
                child = account.start(
                    [
                        programs.path("postgres"),
                        *("-D", self._folder),
                        *(word for name, value in chosen.items() for word in ("-c", f"{name}={value}")),
                    ],
                    output=output,
                    share=[self._run_lock.descriptor],
                    variables=self._ignore_written_pid(),
                )
            finally:
                os.close(output)
            self._run_lock.leave_to_child()
            return child
        finally:
            self._run_lock.drop()

    def stop(self) -> bool:
        """Asks the server to stop and waits, within bounds; whether it is gone. Sessions that are left are ended."""
        for number, patience in STOPS:
            pid = self.pid()
            if pid is None:
                break
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                break
            end = time.monotonic() + patience
            while not self.gone() and time.monotonic() < end:
                time.sleep(PAUSE)
        return self.gone()

    def _ignore_written_pid(self) -> dict[str, str]:
        """Makes PostgreSQL accept the pid file of a dead server. The caller knows that no server process is left.

        PostgreSQL gives up when it finds the number of a live process, or a zombie, there, whichever that is, but for
        its own forebears; and when it finds no number, as after a power cut.
        """
        written = self._written_pid()
        if written is not None:
            return {"PG_GRANDPARENT_PID": str(written)}
        if os.path.lexists(self._pid_file):
            os.unlink(self._pid_file)
        return {}

    def _written_pid(self) -> int | None:
        first = next(iter(self._pid_lines()), "").removeprefix("-")  # a minus: a server without a postmaster
        return int(first) if first.isdecimal() and int(first) > 0 else None

    def _pid_lines(self) -> list[str]:
        try:
            with open(self._pid_file, encoding="utf-8", errors="replace") as file:
                return [line.strip() for line in file]
        except FileNotFoundError:
            return []


def _is_postmaster(pid: int, folder: str) -> bool:
    """Whether that process is a PostgreSQL server at work in `folder`. A zombie is not."""
    if os.path.isdir("/proc/self"):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
                name = file.read().strip()
            return name == "postgres" and os.path.samefile(f"/proc/{pid}/cwd", folder)
        except OSError:
            return False
    import subprocess

    question = ["/bin/ps", "-ww", "-o", "args=", "-p", str(pid)]
    told = subprocess.run(question, capture_output=True, check=False).stdout  # noqa: S603 - a number is all that varies
    return b"postgres" in told and os.fsencode(folder) in told
