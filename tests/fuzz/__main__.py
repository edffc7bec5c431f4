"""`python -m tests.fuzz --seconds 60 [--seed N]`: strange bytes to a real worker; exit status 0 if it bore them all."""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.fuzz.campaign import Campaign
from tests.fuzz.target import Target
from tests.support.database import connection, fresh_schema
from tests.support.environment import worker_environment
from tests.support.reached import Reached
from tests.support.server import postgresql

LEVELS = 5000


def main() -> int:
    """Prints each finding with the smallest input that shows it, and the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long to go on (default: 60)")
    parser.add_argument("--seed", type=int, default=None, help="send the same again")
    arguments = parser.parse_args()
    number = secrets.randbelow(10**6) if arguments.seed is None else arguments.seed
    sys.stdout.write(f"fuzz: seed {number}\n")
    sys.stdout.flush()
    sys.setrecursionlimit(LEVELS)
    folder = Path(tempfile.mkdtemp(prefix="checkpoint-fuzz-"))
    folder.chmod(0o711)  # the account of the server has to pass
    try:
        with (
            postgresql(folder / "pg", insist_on_container=False) as server,
            connection(server.url) as admin,
            fresh_schema(admin) as schema,
        ):
            place = folder / "place"
            place.mkdir()
            changes = {"DATABASE_URL": server.url, "CHECKPOINT_SCHEMA": schema}
            target = Target(worker_environment(changes), place, Reached(folder))
            try:
                campaign = Campaign(target, number)
                table = campaign.run(arguments.seconds)
            finally:
                target.kill()
        sys.stdout.write("".join(f"{finding}\n" for finding in campaign.findings))
        sys.stdout.write(str(table))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if table.right else 1


if __name__ == "__main__":
    sys.exit(main())
