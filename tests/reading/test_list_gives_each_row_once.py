"""List: newest first, in pages that lose and repeat nothing (contract, section 3, list)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.asking import done, pages, refused

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.place import Place
    from tests.support.worker import Worker

INSERT = """
    INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data, updated_at)
    SELECT %(workflow)s, 'step ' || n, %(tenant)s, json_build_object('n', n), %(moment)s FROM generate_series(1, %(count)s) AS n
"""
MEBIBYTE = 1024 * 1024


def insert(place: Place, workflow: str, count: int, tenant: str = "default", moment: str = "2026-01-01Z") -> None:
    """Rows that all have the same updated_at."""
    values = {"workflow": workflow, "count": count, "tenant": tenant, "moment": moment}
    place.sql.execute(INSERT, values)


def listed(place: Place, workflow: str, **fields: object) -> list[list[dict[str, Any]]]:
    """The pages of a list of the workflow."""
    return pages(place.worker, "list", "checkpoints", workflow_id=workflow, **fields)


def test_the_newest_comes_first(place: Place, workflow: str) -> None:
    """Rows come by updated_at, newest first; a row saved again moves to the front."""
    for step in ("a", "b", "c", "a"):
        done(place.worker, "save", workflow_id=workflow, step_id=step, state_data={"of": step})
    (page,) = listed(place, workflow)
    assert [row["step_id"] for row in page] == ["a", "c", "b"]
    assert [row["state_data"] for row in page] == [{"of": "a"}, {"of": "c"}, {"of": "b"}]
    assert {row["workflow_id"] for row in page} == {workflow}
    times = [row["updated_at"] for row in page]
    assert times == sorted(times, reverse=True)


def test_a_row_of_the_list_is_the_row_of_get(place: Place, workflow: str, tenant: str) -> None:
    """Every field of a listed row is that of get."""
    done(place.worker, "save", workflow_id=workflow, step_id="s", tenant_id=tenant, state_data={"x": "y"})
    row = done(place.worker, "get", workflow_id=workflow, step_id="s")
    del row["found"], row["authority_source"]
    assert listed(place, workflow) == [[row]]


def test_rows_of_one_instant_come_exactly_once(place: Place, workflow: str) -> None:
    """Fifty rows with one updated_at, read seven at a time: each once, larger ids first."""
    insert(place, workflow, 50)
    found = listed(place, workflow, limit=7)
    assert [len(page) for page in found] == [7] * 7 + [1]
    ids = [row["id"] for page in found for row in page]
    assert ids == sorted(set(ids), reverse=True)
    assert len(ids) == 50


def test_rows_saved_and_deleted_meanwhile_disturb_no_other(place: Place, workflow: str) -> None:
    """A row that is not saved during the paging comes exactly once, whatever happens to others between the pages."""
    insert(place, workflow, 30)
    quiet = [f"step {number}" for number in range(1, 31) if number not in (3, 15, 28)]
    seen = []
    cursor: dict[str, object] = {}
    for number in range(100):
        page = done(place.worker, "list", workflow_id=workflow, limit=4, **cursor)
        seen += [row["step_id"] for row in page["checkpoints"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
        done(place.worker, "save", workflow_id=workflow, step_id=f"new {number}", state_data={})
        if number == 2:
            done(place.worker, "save", workflow_id=workflow, step_id="step 3", state_data={})
            done(place.worker, "delete", workflow_id=workflow, step_id="step 15")
            done(place.worker, "save", workflow_id=workflow, step_id="step 28", state_data={})
    assert sorted(step for step in seen if step in quiet) == sorted(quiet)
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize(("limit", "sizes"), [(1, [1, 1, 1, 1, 1]), (4, [4, 1]), (5, [5]), (6, [5])])
def test_a_page_ends_at_the_limit(place: Place, workflow: str, limit: int, sizes: list[int]) -> None:
    """A page has `limit` rows, and next_cursor is null with the last row, not after an empty page."""
    insert(place, workflow, 5)
    assert [len(page) for page in listed(place, workflow, limit=limit)] == sizes


@pytest.mark.parametrize("limit", [0, -1, "2", 1.5, 10001, True])
@pytest.mark.parametrize("action", ["list", "workflows"])
def test_a_limit_out_of_range_is_refused(place: Place, action: str, limit: object) -> None:
    """A limit is a whole number from 1 to 10000; the refusal names it."""
    code, error = refused(place.worker, action, workflow_id="wf", limit=limit)
    assert (code, "limit" in error) == ("INVALID_ARG", True)


def test_an_empty_workflow_is_an_empty_list(place: Place, workflow: str) -> None:
    """No rows is a success with none."""
    answer = done(place.worker, "list", workflow_id=workflow)
    assert (answer["checkpoints"], answer["count"], answer["next_cursor"]) == ([], 0, None)


def test_a_named_tenant_lists_only_its_own(place: Place, workflow: str, tenant: str) -> None:
    """Rows of two tenants in one workflow: each sees its own; without a tenant all are listed."""
    done(place.worker, "save", workflow_id=workflow, step_id="a", tenant_id=tenant, state_data={})
    done(place.worker, "save", workflow_id=workflow, step_id="b", state_data={})
    for scope, steps in (({"tenant_id": tenant}, ["a"]), ({"tenant_id": "default"}, ["b"]), ({}, ["b", "a"])):
        assert [row["step_id"] for row in listed(place, workflow, **scope)[0]] == steps
    assert listed(place, workflow, tenant_id="nobody") == [[]]


def test_a_cursor_is_bound_to_its_filters(place: Place, workflow: str, tenant: str) -> None:
    """A cursor goes with the workflow and the tenant it was made for; the limit may change."""
    insert(place, workflow, 5)
    insert(place, f"{workflow} other", 5)
    cursor = done(place.worker, "list", workflow_id=workflow, limit=2)["next_cursor"]
    for other in (
        {"workflow_id": f"{workflow} other"},
        {"workflow_id": workflow, "tenant_id": "default"},
        {"workflow_id": workflow, "tenant_id": tenant},
    ):
        code, error = refused(place.worker, "list", **other, limit=2, cursor=cursor)
        assert (code, "cursor" in error) == ("INVALID_ARG", True)
    assert done(place.worker, "list", workflow_id=workflow, limit=3, cursor=cursor)["count"] == 3
    workflows = refused(place.worker, "workflows", cursor=cursor)
    assert workflows[0] == "INVALID_ARG"


@pytest.mark.parametrize("cursor", ["x", "%%%", "é", "AAAA", "W10", "WzEsWzEsMl1d", "A" * 4096, "bnVsbA"])
@pytest.mark.parametrize("action", ["list", "workflows"])
def test_a_cursor_of_nobodys_making_is_refused(place: Place, action: str, cursor: str) -> None:
    """Text that no answer ever gave as next_cursor is INVALID_ARG, not an outage."""
    code, error = refused(place.worker, action, workflow_id="wf", cursor=cursor)
    assert (code, "cursor" in error) == ("INVALID_ARG", True)


def test_a_cursor_serves_another_process(place: Place, workflow: str, start_offline_worker: StartWorker) -> None:
    """A cursor is good in any process: nothing of it is kept in the one that gave it."""
    insert(place, workflow, 3)
    cursor = done(place.worker, "list", workflow_id=workflow, limit=2)["next_cursor"]
    other = start_offline_worker(place.settings)
    assert done(other, "list", workflow_id=workflow, limit=2, cursor=cursor)["count"] == 1


def test_a_page_ends_at_64_mebibytes_of_states(place: Place, workflow: str) -> None:
    """States of 64 MiB to the byte are a page, one more begins the next; without states all are one page."""
    sizes = {"c": 64 * MEBIBYTE - 10, "b": 10, "a": 10}
    for number, (step, size) in enumerate(sizes.items()):
        place.sql.execute(
            "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data, updated_at)"
            " SELECT %s, %s, ('{\"x\":\"' || repeat('x', %s) || '\"}')::json, '2026-01-01Z'::timestamptz - %s * interval '1 s'",
            (workflow, step, size - 8, number),
        )
    found = listed(place, workflow)
    assert [[row["step_id"] for row in page] for page in found] == [["c", "b"], ["a"]]
    assert [len(row["state_data"]["x"]) + 8 for page in found for row in page] == list(sizes.values())
    (bare,) = listed(place, workflow, include_state=False)
    assert len(bare) == 3
    assert not any("state_data" in row for row in bare)
    done(place.worker, "delete", workflow_id=workflow, all_steps=True)


def test_without_states_a_row_is_otherwise_the_same(place: Place, workflow: str) -> None:
    """include_state false leaves state_data out and everything else as it is."""
    insert(place, workflow, 5)
    rows = [row for page in listed(place, workflow, limit=2) for row in page]
    for row in rows:
        del row["state_data"]
    assert [row for page in listed(place, workflow, limit=2, include_state=False) for row in page] == rows


def test_a_cursor_made_by_hand_is_the_callers_mistake(worker: Worker) -> None:
    """A position that no list can have, in a cursor of the right filters, is INVALID_ARG and no outage."""
    for name in ("a", "b"):
        done(worker, "save", workflow_id=name, step_id="s", state_data={})
    made = done(worker, "workflows", limit=1)["next_cursor"]
    mark, (micros, _, tenant) = json.loads(base64.urlsafe_b64decode(made + "=" * (-len(made) % 4)))
    forged = base64.urlsafe_b64encode(json.dumps([mark, [micros, "\0", tenant]]).encode()).decode().rstrip("=")
    answer = worker.request({"action": "workflows", "cursor": forged})
    assert answer["code"] == "INVALID_ARG"
