"""`python -m tests.fuzz --seconds 60 [--seed N]`: strange bytes to a real worker; exit status 0 if it bore them all."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.fuzz.campaign import Campaign
from tests.fuzz.target import Target
from tests.support import program
from tests.support.database import connection, fresh_schema
from tests.support.environment import worker_environment
from tests.support.reached import Reached
from tests.support.server import postgresql

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.table import Table

LEVELS = 5000


def work(folder: Path, seed: int, seconds: float) -> tuple[Iterable[object], Table]:
    """Each finding with the smallest input that shows it, and the table."""
    sys.setrecursionlimit(LEVELS)
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
            campaign = Campaign(target, seed)
            table = campaign.run(seconds)
        finally:
            target.kill()
    return campaign.findings, table


if __name__ == "__main__":
    sys.exit(program.run("fuzz", __doc__, 60, work))
