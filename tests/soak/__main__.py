"""`python -m tests.soak --seconds 300 [--seed N]`: constant load on one worker; exit status 0 if it holds no more than before."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.endurance import Endurance
from tests.support.database import connection, fresh_schema
from tests.support.server import postgresql


def main() -> int:
    """Prints the table, and answers that should not have come."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="how long the load goes on (default: 300)")
    parser.add_argument("--seed", type=int, default=None, help="the same load again")
    arguments = parser.parse_args()
    seed = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    sys.stdout.write(f"soak: seed {seed}\n")
    sys.stdout.flush()
    folder = Path(tempfile.mkdtemp(prefix="checkpoint-soak-"))
    folder.chmod(0o711)  # the account of the server has to pass
    try:
        with (
            postgresql(folder / "pg", insist_on_container=False) as server,
            connection(server.url) as admin,
            fresh_schema(admin) as schema,
        ):
            endurance = Endurance(folder, server.url, schema, admin, seed)
            table = endurance.run(arguments.seconds)
        sys.stdout.write("".join(f"{answer}\n" for answer in endurance.unforeseen[:50]))
        sys.stdout.write(str(table))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if table.right else 1


if __name__ == "__main__":
    sys.exit(main())
