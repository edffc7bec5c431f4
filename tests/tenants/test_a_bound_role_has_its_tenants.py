"""A worker whose role is bound to tenants has no part of any other, pinned or not (contract, section 6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.asking import done, refused
from tests.tenants.conftest import (
    AN_HOUR,
    APPROVAL_OF_A,
    ASKED_BY_A,
    KEY_OF_A,
    KEY_OF_B,
    OF_B,
    SHARED,
    tells_nothing_of_a,
)

if TYPE_CHECKING:
    from tests.tenants.conftest import Tenants
    from tests.tenants.roles import AsRole, Roles

STATE = {"state_data": {"whose": "b now"}}


def test_a_worker_of_a_bound_role_has_no_part_of_another_tenant(
    as_role: AsRole, roles: Roles, tenants: Tenants
) -> None:
    """Not pinned, but its role is: every action reads, counts, changes and deletes rows of b only."""
    worker = as_role(roles.new("b"))
    for tenant in ({}, {"tenant_id": "a"}):
        for action in ("get", "cached_get"):
            assert not done(worker, action, **KEY_OF_A, **tenant)["found"]
        assert done(worker, "list", workflow_id="workflow-of-a", **tenant)["count"] == 0
        assert done(worker, "delete", **KEY_OF_A, **tenant)["deleted_count"] == 0
        assert done(worker, "delete", workflow_id="workflow-of-a", all_steps=True, **tenant)["deleted_count"] == 0
        assert done(worker, "prune", older_than_sec=AN_HOUR, **tenant)["deleted_count"] == 0
        assert done(worker, "rebuild", **tenant)["pg_read_count"] == 0
        tells_nothing_of_a(worker)
    assert [row["tenant_id"] for row in done(worker, "list", workflow_id=SHARED)["checkpoints"]] == ["b"]
    assert {row["tenant_id"] for row in done(worker, "workflows")["workflows"]} == {"b"}
    assert done(worker, "verify")["pg_count"] == len(OF_B)
    assert done(worker, "pending")["count"] == 0
    assert done(worker, "rebuild", tenant_id="b")["pg_read_count"] == len(OF_B)
    tells_nothing_of_a(worker)
    assert done(worker, "prune", older_than_sec=AN_HOUR, all_tenants=True, dry_run=True)["deleted_count"] == len(OF_B)
    assert done(worker, "prune", older_than_sec=AN_HOUR, all_tenants=True)["deleted_count"] == len(OF_B)


def test_saves_of_a_bound_role_are_denied_or_conflict(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """Another tenant's name is TENANT_DENIED, another tenant's key TENANT_CONFLICT; its own rows are saved as ever."""
    worker = as_role(roles.new("b"))
    for key in (KEY_OF_A, {"workflow_id": "new", "step_id": "s"}):
        for tenant in ({}, {"tenant_id": "a"}):  # without one it is the tenant "default"
            for expected in ({}, {"expected_revision": 0}):
                code, error = refused(worker, "save", **key, **STATE, **tenant, **expected)
                assert code == "TENANT_DENIED", (key, tenant, expected, error)
    for expected in ({}, {"expected_revision": 0}, {"expected_revision": 1}, {"expected_revision": 7}):
        code, error = refused(worker, "save", **KEY_OF_A, **STATE, tenant_id="b", **expected)
        assert code == "TENANT_CONFLICT", (expected, error)
        assert "revision" not in error
    saved = done(worker, "save", **KEY_OF_B, **STATE, tenant_id="b")
    assert saved["revision"] == 2
    assert done(worker, "save", **KEY_OF_B, **STATE, tenant_id="b", expected_revision=2)["revision"] == 3
    assert refused(worker, "save", **KEY_OF_B, **STATE, tenant_id="b", expected_revision=2)[0] == "REVISION_CONFLICT"
    assert done(worker, "save", workflow_id="new", step_id="s", **STATE, tenant_id="b")["revision"] == 1


def test_saves_that_waited_together_are_each_held_to_the_tenant(
    as_role: AsRole, roles: Roles, tenants: Tenants
) -> None:
    """Sent in one write, each gets its own verdict: one for a, one onto a's key and one of its own."""
    bound, pinned = as_role(roles.new("b")), tenants.pinned
    own = {"workflow_id": "together", "tenant_id": "b", **STATE}
    together = (
        {**own, "step_id": "1"},
        {**own, "step_id": "2", "tenant_id": "a"},
        {**own, **KEY_OF_A},
        {**own, "step_id": "3"},
    )
    for worker in (bound, pinned):
        lines = [json.dumps({"action": "save", **fields}) + "\n" for fields in together]
        worker.send_raw("".join(lines).encode())
        answers = worker.read_lines(len(together))
        assert [answer["code"] for answer in answers] == [None, "TENANT_DENIED", "TENANT_CONFLICT", None], answers


def test_approvals_of_a_bound_role_stay_in_its_tenant(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """What waits for a's people is not seen, decided or replaced by b's."""
    worker = as_role(roles.new("b"))
    assert done(worker, "pending")["count"] == 0
    for action in ("approve", "reject"):
        assert refused(worker, action, **APPROVAL_OF_A, token=tenants.token_of_a)[0] == "APPROVAL_NOT_FOUND"
    assert refused(worker, "request_approval", **APPROVAL_OF_A, **ASKED_BY_A, tenant_id="b")[0] == "TENANT_CONFLICT"
    tells_nothing_of_a(worker)
    new = {"workflow_id": "new", "step_id": "approval"}
    assert refused(worker, "request_approval", **new, **ASKED_BY_A, tenant_id="a")[0] == "TENANT_DENIED"
    assert refused(worker, "request_approval", **new, **ASKED_BY_A)[0] == "TENANT_DENIED"
    assert done(worker, "request_approval", **new, **ASKED_BY_A, tenant_id="b")["created"]
    assert [row["tenant_id"] for row in done(worker, "pending")["pending"]] == ["b"]


def test_a_pinned_process_with_a_bound_role_has_both_walls(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """Pinned to b under a role of b all works without naming the tenant; under a role of a nothing of a can be had."""
    both = as_role(roles.new("b"), CHECKPOINT_TENANT="b")
    assert done(both, "save", **KEY_OF_B, **STATE)["tenant_id"] == "b"
    assert done(both, "healthcheck")["pg"]["row_security"] is True
    crossed = as_role(roles.new("a"), CHECKPOINT_TENANT="b")
    assert not done(crossed, "get", **KEY_OF_A)["found"]
    assert done(crossed, "workflows")["count"] == 0
    assert refused(crossed, "save", **KEY_OF_A, **STATE)[0] == "TENANT_DENIED"
    assert refused(crossed, "save", workflow_id="new", step_id="s", **STATE)[0] == "TENANT_DENIED"


def test_a_role_may_be_bound_to_several_tenants(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """It reads and writes each of them, and nobody else's."""
    worker = as_role(roles.new("b", "c"))
    assert done(worker, "save", workflow_id="of c", step_id="s", tenant_id="c", **STATE)["revision"] == 1
    assert {row["tenant_id"] for row in done(worker, "workflows")["workflows"]} == {"b", "c"}
    assert refused(worker, "save", workflow_id="of d", step_id="s", tenant_id="d", **STATE)[0] == "TENANT_DENIED"


def test_a_role_that_is_not_bound_works_as_before(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """Neither the owner nor bound: it sees all tenants' rows and saves for each, and the health says that no policy binds."""
    worker = as_role(roles.new())
    assert {row["tenant_id"] for row in done(worker, "workflows")["workflows"]} == {"a", "b"}
    assert done(worker, "verify")["pg_count"] == tenants.rows_of_a + len(OF_B)
    assert done(worker, "get", **KEY_OF_A)["tenant_id"] == "a"
    for tenant in ("b", "c", "default"):
        new = {"workflow_id": f"of {tenant}", "step_id": "s", "tenant_id": tenant}
        assert done(worker, "save", **new, **STATE)["revision"] == 1
        assert done(worker, "delete", **new)["deleted_count"] == 1
    assert refused(worker, "save", **KEY_OF_A, **STATE, tenant_id="b")[0] == "TENANT_CONFLICT"
    assert done(worker, "healthcheck")["pg"]["row_security"] is False
    assert done(tenants.everybody, "healthcheck")["pg"]["row_security"] is False
