"""The PostgreSQL of a storm: durable, stopped without warning, started again."""

from __future__ import annotations

import contextlib
import os
import threading
from typing import TYPE_CHECKING, Any

import psycopg

from checkpoint.embedded import EmbeddedServer
from checkpoint.embedded.postmaster import Postmaster
from tests.support.process import until

if TYPE_CHECKING:
    import signal
    from pathlib import Path

CONNECTS_WITHIN = 10
OF_THE_WORKERS = "application_name = 'checkpoint-manager'"


class Database:
    """A server in `folder` with every setting on that makes a commit survive a crash."""

    def __init__(self, folder: Path) -> None:
        self._server = EmbeddedServer(folder)
        self._postmaster = Postmaster(str(folder))
        self._start: threading.Thread | None = None
        self.url = self._server.acquire()

    def crash(self, how: signal.Signals) -> None:
        """Ends the server without a checkpoint: SIGQUIT is its immediate mode. One that is down is started for it."""
        self.start()
        self.be_up()
        pid = self._postmaster.pid()
        assert pid is not None, "the server that was just started has no process"
        os.kill(pid, how)
        until(lambda: self._postmaster.pid() is None, "the server has ended")

    def start(self) -> None:
        """Starts it again and does not wait for its recovery."""
        self.be_up()
        self._start = threading.Thread(target=self._server.acquire, name="server start")
        self._start.start()

    def be_up(self) -> None:
        """Waits for a start under way."""
        if self._start is not None:
            self._start.join()
            self._start = None

    def end_backends(self, share: float) -> int:
        """pg_terminate_backend for about that share of the workers' sessions, at least one; how many were ended."""
        question = f"SELECT pid FROM pg_stat_activity WHERE {OF_THE_WORKERS} ORDER BY random()"
        ended = 0
        with contextlib.suppress(psycopg.Error), psycopg.connect(self.url, connect_timeout=CONNECTS_WITHIN) as sql:
            pids = [pid for (pid,) in sql.execute(question).fetchall()]
            for pid in pids[: max(1, round(share * len(pids)))]:
                ended += sql.execute("SELECT pg_terminate_backend(%s)", (pid,)).fetchone() == (True,)
        return ended

    def settle(self) -> None:
        """Makes sure that the server is up, and that no statement of a worker that was killed is still under way."""
        self.start()
        self.be_up()
        self.end_backends(1.0)
        question = f"SELECT count(*) FROM pg_stat_activity WHERE {OF_THE_WORKERS}"
        with psycopg.connect(self.url, autocommit=True) as sql:
            until(lambda: sql.execute(question).fetchone() == (0,), "no session of a worker is left")

    def rows(self) -> dict[tuple[str, str], dict[str, Any]]:
        """What stands there, by key; state_data as the bytes of its text."""
        statement = "SELECT workflow_id, step_id, tenant_id, state_data::text, id, revision FROM workflow_checkpoints"
        names = ("tenant_id", "state_data", "id", "revision")
        with psycopg.connect(self.url) as sql:
            return {
                (workflow_id, step_id): dict(zip(names, (tenant, text.encode(), *version), strict=True))
                for workflow_id, step_id, tenant, text, *version in sql.execute(statement).fetchall()
            }

    def version(self) -> str:
        """The version of the server."""
        with psycopg.connect(self.url) as sql:
            return str(sql.info.parameter_status("server_version"))

    def close(self) -> None:
        """Stops it."""
        self.be_up()
        self._server.release()
