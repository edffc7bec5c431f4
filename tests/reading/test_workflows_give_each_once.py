"""Workflows: every workflow of every tenant once, the one saved last first (contract, section 3, workflows)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.asking import done, pages, refused

if TYPE_CHECKING:
    from tests.support.place import Place


def workflows(place: Place, **fields: object) -> list[list[dict[str, Any]]]:
    """The pages of the answer."""
    return pages(place.worker, "workflows", "workflows", **fields)


def test_a_workflow_tells_its_count_and_its_last_time(place: Place, tenant: str) -> None:
    """Newest first, each with its number of checkpoints and the time of its last save."""
    for workflow, step in (("one", "a"), ("two", "a"), ("one", "b")):
        saved = done(
            place.worker, "save", workflow_id=f"{tenant} {workflow}", step_id=step, tenant_id=tenant, state_data={}
        )
    (page,) = workflows(place, tenant_id=tenant)
    assert [(row["workflow_id"], row["checkpoint_count"]) for row in page] == [
        (f"{tenant} one", 2),
        (f"{tenant} two", 1),
    ]
    assert page[0]["last_updated_at"] == saved["updated_at"]
    assert {row["tenant_id"] for row in page} == {tenant}


def test_a_workflow_of_two_tenants_is_two(place: Place, workflow: str, tenant: str) -> None:
    """One workflow id under two tenants is listed for each, with its own count; a tenant sees its own only."""
    done(place.worker, "save", workflow_id=workflow, step_id="a", tenant_id=tenant, state_data={})
    for step in "bc":
        done(place.worker, "save", workflow_id=workflow, step_id=step, state_data={})
    every = [row for page in workflows(place) for row in page if row["workflow_id"] == workflow]
    assert {(row["tenant_id"], row["checkpoint_count"]) for row in every} == {(tenant, 1), ("default", 2)}
    assert [row["tenant_id"] for page in workflows(place, tenant_id=tenant) for row in page] == [tenant]


def test_workflows_of_one_instant_come_exactly_once(place: Place, tenant: str) -> None:
    """Twenty workflows with one last time, read three at a time: each once; the limit may change on the way."""
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data, updated_at)"
        " SELECT %(tenant)s || n, 's', %(tenant)s, '{}', '2026-01-01Z' FROM generate_series(1, 20) AS n",
        {"tenant": tenant},
    )
    found = workflows(place, tenant_id=tenant, limit=3)
    assert [len(page) for page in found] == [3] * 6 + [2]
    ids = [row["workflow_id"] for page in found for row in page]
    assert sorted(ids) == sorted(f"{tenant}{number}" for number in range(1, 21))
    cursor = done(place.worker, "workflows", tenant_id=tenant, limit=3)["next_cursor"]
    assert done(place.worker, "workflows", tenant_id=tenant, limit=100, cursor=cursor)["count"] == 17


def test_a_cursor_is_bound_to_its_tenant(place: Place, tenant: str) -> None:
    """A cursor goes with the tenant it was made for, and with this action."""
    for number in range(3):
        done(place.worker, "save", workflow_id=f"{tenant}{number}", step_id="s", tenant_id=tenant, state_data={})
    cursor = done(place.worker, "workflows", tenant_id=tenant, limit=1)["next_cursor"]
    assert refused(place.worker, "workflows", limit=1, cursor=cursor)[0] == "INVALID_ARG"
    assert refused(place.worker, "workflows", tenant_id="default", limit=1, cursor=cursor)[0] == "INVALID_ARG"
    assert refused(place.worker, "list", workflow_id=f"{tenant}0", tenant_id=tenant, cursor=cursor)[0] == "INVALID_ARG"


def test_an_unknown_tenant_has_none(place: Place, tenant: str) -> None:
    """No workflows is a success with none."""
    answer = done(place.worker, "workflows", tenant_id=tenant)
    assert (answer["workflows"], answer["count"], answer["next_cursor"]) == ([], 0, None)
