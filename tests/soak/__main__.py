"""`python -m tests.soak --seconds 300 [--seed N]`: constant load on one worker; exit status 0 if it holds no more than before."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.soak.endurance import Endurance
from tests.support import program
from tests.support.database import connection, fresh_schema
from tests.support.server import postgresql

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.support.table import Table

SHOWN = 50


def work(folder: Path, seed: int, seconds: float) -> tuple[Iterable[object], Table]:
    """Answers that should not have come, and the table."""
    with (
        postgresql(folder / "pg", insist_on_container=False) as server,
        connection(server.url) as admin,
        fresh_schema(admin) as schema,
    ):
        endurance = Endurance(folder, server.url, schema, admin, seed)
        table = endurance.run(seconds)
    return endurance.unforeseen[:SHOWN], table


if __name__ == "__main__":
    sys.exit(program.run("soak", __doc__, 300, work))
