"""Commands as processes of their own, forked from one that has the packages loaded: the same, without the half second."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

REPOSITORY = Path(__file__).resolve().parents[2]
FORKING = """
import importlib, json, os, sys
for name in ("psycopg", "jsonschema_rs", "jsonschema", "rich.console", "rich.table", "rich.progress", "zoneinfo"):
    importlib.import_module(name)
for name in ("checkpoint.cli.main", "checkpoint.authority.store", "checkpoint.cache.cache", "checkpoint.actions.verify"):
    importlib.import_module(name)
for line in sys.stdin:
    command = json.loads(line)
    child = os.fork()
    if child == 0:
        for number, path in enumerate(command["streams"]):
            os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY), number)
        os.chdir(command["cwd"])
        os.environ.clear()
        os.environ.update(command["environment"])
        sys.argv = command["argv"]
        sys.stdin, sys.stdout, sys.stderr = open(0, closefd=False), open(1, "w", closefd=False), open(2, "w", closefd=False)
        status = 1
        try:
            status = sys.modules["checkpoint.cli.main"].main()
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(bool(end.code))
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(status, flush=True)
"""


class Forks:
    """Starts `checkpoint` with words, an environment and a folder; one command at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def run(
        self, words: Sequence[str], environment: Mapping[str, str], cwd: Path, stdin: bytes
    ) -> tuple[int, bytes, bytes]:
        """Status, stdout and stderr of one command."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", FORKING],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                cwd=REPOSITORY,
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            streams = [Path(folder) / name for name in ("in", "out", "err")]
            for stream, content in zip(streams, (stdin, b"", b""), strict=True):
                stream.write_bytes(content)
            command = {
                "argv": ["checkpoint", *words],
                "environment": dict(environment),
                "cwd": str(cwd),
                "streams": [str(stream) for stream in streams],
            }
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            return status, streams[1].read_bytes(), streams[2].read_bytes()


FORKS = Forks()
