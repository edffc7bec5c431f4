"""`python -m checkpoint.embedded psql`: runs a program of PostgreSQL on the embedded server (operations, Backup)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from psycopg import conninfo

from checkpoint.embedded import EmbeddedError, EmbeddedServer, data_folder
from checkpoint.embedded.folder import cluster_version
from checkpoint.embedded.programs import find_programs
from checkpoint.settings import EMBEDDED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

USAGE = "usage: [DATABASE_URL=embedded:PATH] python -m checkpoint.embedded psql|pg_dump|pg_restore|... [ARGUMENT ...]"
VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}
ELSEWHERE = ("PGSERVICE", "PGSERVICEFILE", "PGHOSTADDR", "PGTARGETSESSIONATTRS")  # would lead to another server
FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def main() -> int:
    """The exit status of the program, or 2 with one line on stderr. It finds the server by the variables of libpq."""
    url = os.environ.get("DATABASE_URL") or EMBEDDED_PREFIX
    words = sys.argv[1:]
    if not words or words[0].startswith("-"):
        sys.stderr.write(USAGE + "\n")
        return 2
    if not url.startswith(EMBEDDED_PREFIX):
        sys.stderr.write("DATABASE_URL names another server than the embedded one; use that server's own programs\n")
        return 2
    try:
        folder = data_folder(url)
        version = cluster_version(folder)
        if version is None:
            raise EmbeddedError(f"there is no embedded server in {folder} yet; a first request makes it")
        program = find_programs(version).path(words[0])
        if not (words[0] and os.path.isfile(program) and os.access(program, os.X_OK)):
            raise EmbeddedError(f"{os.path.dirname(program)} has no program {words[0]!r}")
        server = EmbeddedServer(folder)
        address = conninfo.conninfo_to_dict(server.acquire())
    except EmbeddedError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    try:
        return _run([program, *words[1:]], address)
    finally:
        server.release()


def _run(argv: list[str], address: Mapping[str, object]) -> int:
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    environment |= {variable: str(address[key]) for key, variable in VARIABLES.items() if address.get(key)}
    signal.signal(
        signal.SIGINT, lambda *_: None
    )  # it reaches the program too, and what it means is the program's to say
    with subprocess.Popen(argv, env=environment) as program:  # noqa: S603 - as asked
        for number in FORWARDED:
            signal.signal(number, lambda received, _frame: program.send_signal(received))
        return program.wait()


if __name__ == "__main__":
    sys.exit(main())
