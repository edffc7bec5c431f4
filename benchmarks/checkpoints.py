"""Many checkpoints at once in PostgreSQL, put there by COPY into the product's own table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.servers import Server

COPY = "COPY workflow_checkpoints (workflow_id, step_id, tenant_id, state_data) FROM STDIN"


def fill(server: Server, rows: Iterable[tuple[str, str, str, str]]) -> None:
    """Takes (workflow_id, step_id, tenant_id, state as JSON text). The tables are there already."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        with connection.cursor() as cursor, cursor.copy(COPY) as copy:
            for row in rows:
                copy.write_row(row)
        connection.execute("VACUUM ANALYZE workflow_checkpoints")


def steps(workflow_id: str, tenant_id: str, texts: list[bytes], many: int) -> Iterator[tuple[str, str, str, str]]:
    """That many steps of one workflow, with one state after the other."""
    states = [text.decode() for text in texts]
    for number in range(many):
        yield workflow_id, f"step-{number}", tenant_id, states[number % len(states)]
