"""A process for one request, as callers in other languages start it, beside an interpreter that imports the driver."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from benchmarks.figure import MILLISECONDS, Row, at_most, cost
from benchmarks.interleaved import Contestant, interleaved
from benchmarks.piped import SUCCESS, Refused, clean_environment
from benchmarks.states import KB, States
from benchmarks.workers import RUNNER, line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.run import Run
    from benchmarks.servers import Server

IMPORT, NOTHING = 'python -c "import psycopg"', 'python -c "pass"'
STARTS = 12
LISTED = 12
WORKFLOW = "start"
SAVE, HIT = "save", "cached_get hit"


class Import(msgspec.Struct, frozen=True):
    """A module that a request imports; the microseconds are its own, without what it imports in turn."""

    module: str
    own_us: int


class _Program:
    """A command that is started, fed and waited for."""

    def __init__(self, argv: list[str], request: bytes, settings: dict[str, str]) -> None:
        self._argv = argv
        self._request = request
        self._environment = clean_environment() | settings
        self._cpu = 0.0

    def run(self) -> None:
        """From the start of the process to its end."""
        process = subprocess.Popen(
            self._argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment, bufsize=0
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(self._request)
        process.stdin.close()
        answer = process.stdout.read()
        process.stdout.close()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._cpu += usage.ru_utime + usage.ru_stime
        if process.returncode != 0 or (self._request and not answer.startswith(SUCCESS)):
            raise Refused(answer[:300].decode("utf-8", "replace"))

    def contestant(self, name: str) -> Contestant:
        """The whole life of the process as one operation."""
        return Contestant(name, lambda _: None, lambda _: self.run(), lambda: self._cpu)

    def imports(self) -> list[Import]:
        """What it imports, the heaviest first."""
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *self._argv[1:]],
            input=self._request,
            capture_output=True,
            env=self._environment,
            check=True,
        )
        told = [line.removeprefix("import time:").split("|") for line in done.stderr.decode().splitlines()]
        found = [
            Import(parts[2].strip(), int(parts[0])) for parts in told if len(parts) == 3 and parts[0].strip().isdigit()
        ]
        return sorted(found, key=lambda each: -each.own_us)


class StartUp:
    """The two requests, the folder that they share, and the yardsticks."""

    def __init__(self, run: Run, server: Server) -> None:
        self._run = run
        settings = {"DATABASE_URL": server.url, "CHECKPOINT_DATA_DIR": os.path.join(run.folder, "start-up")}
        state = States(run.random("start")).text(KB)
        self._save = _Program(RUNNER, line("save", WORKFLOW, 1, state), settings)
        self._hit = _Program(RUNNER, line("cached_get", WORKFLOW, 1), settings)

    def rows(self) -> Iterator[Row]:
        """Both requests beside the import of the driver; and what Python itself takes."""
        group = "a process for one request, 1 KB"
        self._run.say(group)
        contestants = [
            self._save.contestant(SAVE),
            self._hit.contestant(HIT),
            _Program([sys.executable, "-c", "import psycopg"], b"", {}).contestant(IMPORT),
            _Program([sys.executable, "-c", "pass"], b"", {}).contestant(NOTHING),
        ]
        self._save.run()
        taken = interleaved(self._run, group, contestants, STARTS, count(), block=1)
        yield cost(taken, group, SAVE, IMPORT, at_most(1.35), ours=SAVE, unit=MILLISECONDS)
        yield cost(taken, group, HIT, IMPORT, at_most(0.5), ours=HIT, unit=MILLISECONDS)
        yield cost(taken, group, HIT, NOTHING, ours=HIT, unit=MILLISECONDS)

    def imports(self) -> dict[str, list[Import]]:
        """The heaviest imports of each request."""
        self._save.run()
        return {SAVE: self._save.imports()[:LISTED], HIT: self._hit.imports()[:LISTED]}
