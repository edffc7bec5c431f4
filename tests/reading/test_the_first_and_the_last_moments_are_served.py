"""Rows of every time that the table takes are found, listed and deleted (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done, pages

if TYPE_CHECKING:
    from tests.support.place import Place

INSERT = """
    INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data, created_at, updated_at)
    VALUES (%s, %s, %s, '{}', %s, %s)"""
FIRST, LAST = "1000-01-01T00:00:00+00:00", "9999-01-01T00:00:00+00:00"  # what the table takes at most
MOMENTS = [
    LAST,
    "9998-12-31T23:59:59.999999+00:00",
    "9998-12-31T23:59:59+00:00",
    "9990-01-01T00:00:00+00:00",
    "1000-06-01T12:00:00+00:00",
    FIRST,
]


def insert(place: Place, workflow: str, tenant: str) -> None:
    """One step for each of the moments, under its name."""
    for moment in MOMENTS:
        place.sql.execute(INSERT, (workflow, moment, tenant, moment, moment))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_row_of_that_time_is_served_and_deleted(place: Place, workflow: str, tenant: str, moment: str) -> None:
    """Get, list and workflows have the row; delete removes it and answers 1."""
    place.sql.execute(INSERT, (workflow, "s", tenant, moment, moment))
    key = {"workflow_id": workflow, "step_id": "s", "tenant_id": tenant}
    got = done(place.worker, "get", **key)
    assert (got["found"], got["updated_at"][:10]) == (True, moment[:10])
    listed = done(place.worker, "list", workflow_id=workflow, tenant_id=tenant)
    assert [row["step_id"] for row in listed["checkpoints"]] == ["s"]
    found = done(place.worker, "workflows", tenant_id=tenant)["workflows"]
    assert [(row["workflow_id"], row["checkpoint_count"]) for row in found] == [(workflow, 1)]
    assert done(place.worker, "delete", **key)["deleted_count"] == 1
    assert done(place.worker, "get", **key)["found"] is False


def test_all_of_them_come_in_order_and_go_together(place: Place, workflow: str, tenant: str) -> None:
    """The latest first, over pages of two; with all_steps one delete removes every one."""
    insert(place, workflow, tenant)
    found = pages(place.worker, "list", "checkpoints", workflow_id=workflow, tenant_id=tenant, limit=2)
    assert [row["step_id"] for page in found for row in page] == MOMENTS
    gone = done(place.worker, "delete", workflow_id=workflow, tenant_id=tenant, all_steps=True)
    assert gone["deleted_count"] == len(MOMENTS)
    assert pages(place.worker, "workflows", "workflows", tenant_id=tenant) == [[]]
