"""`python -m checkpoint.embedded psql`: runs a program of PostgreSQL on the embedded server (operations, Backup)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from psycopg import conninfo

from checkpoint.embedded import EmbeddedError, EmbeddedServer, data_folder
from checkpoint.embedded.folder import cluster_version
from checkpoint.embedded.programs import find_programs
from checkpoint.settings import EMBEDDED_PREFIX

USAGE = "usage: [DATABASE_URL=embedded:PATH] python -m checkpoint.embedded psql|pg_dump|pg_restore|... [ARGUMENT ...]"
VARIABLES = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "dbname": "PGDATABASE"}


def main() -> int:
    """The exit status of the program, or 2 with one line on stderr. It finds the server by the variables of libpq."""
    url = os.environ.get("DATABASE_URL") or EMBEDDED_PREFIX
    words = sys.argv[1:]
    if not words or not url.startswith(EMBEDDED_PREFIX):
        sys.stderr.write(USAGE + "\n")
        return 2
    try:
        folder = data_folder(url)
        program = find_programs(cluster_version(folder)).path(words[0])
        if not os.access(program, os.X_OK):
            raise EmbeddedError(f"{os.path.dirname(program)} has no program {words[0]}")
        server = EmbeddedServer(folder)
        address = conninfo.conninfo_to_dict(server.acquire())
    except EmbeddedError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    signal.signal(signal.SIGINT, lambda *_: None)  # what Ctrl-C means is the program's to say
    try:
        given = {variable: str(address[key]) for key, variable in VARIABLES.items() if address.get(key)}
        return subprocess.run([program, *words[1:]], env=os.environ | given, check=False).returncode  # noqa: S603 - as asked
    finally:
        server.release()


if __name__ == "__main__":
    sys.exit(main())
