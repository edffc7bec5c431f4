"""PostgreSQL takes no row that no answer could tell, whoever writes it (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.faults.actions import KEY, ask

if TYPE_CHECKING:
    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer

TABLES = "workflow_checkpoints", "workflow_checkpoint_store", "workflow_checkpoint_migrations", "workflow_tenant_roles"


def test_a_row_of_another_program_is_taken_or_refused(here: Here, server: OwnServer, own_schema: str) -> None:
    """A key and a state are enough; a value that this program could not answer is refused, in an update too."""
    worker = here()
    assert ask(worker, "save")["success"]
    table = f"{own_schema}.workflow_checkpoints"
    server.query(f"INSERT INTO {table} (workflow_id, step_id, state_data) VALUES ('wf', 'theirs', '{{\"n\": 1.0}}')")
    found = worker.request({"action": "get", **KEY, "step_id": "theirs"})["data"]
    assert (found["state_data"], found["revision"]) == ({"n": 1.0}, 1)
    for column, value in (
        ("kind", "'step'"),
        ("state_data", "'[1]'"),
        ("state_data", "'{'"),
        ("revision", "0"),
        ("created_at", "'infinity'"),
        ("updated_at", "'0044-03-15 BC'"),
        ("awaiting_since", "'-infinity'"),
        ("tenant_id", "NULL"),
    ):
        with pytest.raises((psycopg.errors.DataError, psycopg.errors.IntegrityError)):
            server.query(f"UPDATE {table} SET {column} = {value} WHERE step_id = 'theirs'")


def test_tables_that_were_dropped_are_made_anew(here: Here, server: OwnServer, own_schema: str) -> None:
    """What belonged to them and was left over is not in the way."""
    worker = here()
    assert ask(worker, "save")["success"]
    server.query(f"DROP TABLE {', '.join(f'{own_schema}.{table}' for table in TABLES)}")
    assert ask(here(), "save")["data"]["revision"] == 1
