"""A process pinned to tenant b has no part of tenant a, in PostgreSQL or in the cache (contract, section 6)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint import actions
from checkpoint.validation import load_schema
from tests.support.asking import done, refused
from tests.tenants.conftest import (
    ALL_OF_A,
    AN_HOUR,
    APPROVAL_OF_A,
    ASKED_BY_A,
    CACHED_OF_A,
    KEY_OF_A,
    KEY_OF_B,
    OF_B,
    SHARED,
    tells_nothing_of_a,
)

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.worker import Worker
    from tests.tenants.conftest import Tenants

STATE = {"state_data": {"whose": "b now"}}
# A request of every action that takes a tenant, each at something of a's.
AT_A: dict[str, dict[str, Any]] = {
    "save": {**KEY_OF_A, **STATE},
    "get": KEY_OF_A,
    "list": {"workflow_id": SHARED},
    "workflows": {},
    "cache": {**CACHED_OF_A, **STATE},
    "cached_get": KEY_OF_A,
    "rebuild": {},
    "verify": {},
    "delete": KEY_OF_A,
    "prune": {"older_than_sec": AN_HOUR},
    "request_approval": {**APPROVAL_OF_A, **ASKED_BY_A},
    "approve": {**APPROVAL_OF_A, "token": "0" * 64},
    "reject": {**APPROVAL_OF_A, "token": "0" * 64},
    "pending": {},
}


def test_every_action_that_takes_a_tenant_is_tried_here() -> None:
    """What is shown leaves none out."""
    takes = {name for name in actions.NAMES if "tenant_id" in load_schema(f"{name}.request.json")["properties"]}
    assert set(AT_A) == takes


@pytest.mark.parametrize("action", AT_A)
def test_another_tenant_is_denied_by_name(action: str, pinned: Worker) -> None:
    """A request that names another tenant is TENANT_DENIED, whatever else it asks, and changes nothing."""
    for tenant in ("a", "default", "B", "b ", "nobody"):
        code, error = refused(pinned, action, **AT_A[action], tenant_id=tenant)
        assert code == "TENANT_DENIED", tenant
        assert tenant not in error.split()
        tells_nothing_of_a(pinned)


def test_all_tenants_are_denied_too(pinned: Worker) -> None:
    """A prune of all tenants is another tenant's as well; dry runs are no exception."""
    for extra in ({}, {"dry_run": True}, {"workflow_id": SHARED}):
        code, _ = refused(pinned, "prune", older_than_sec=AN_HOUR, all_tenants=True, **extra)
        assert code == "TENANT_DENIED"


@pytest.mark.parametrize("named", [{}, {"tenant_id": "b"}], ids=["no tenant named", "its own named"])
class TestWhatIsReachedWithoutNamingAnother:
    """Every action, at keys of a's, with and without tenant_id."""

    def test_saves_do_not_replace(self, named: dict[str, str], pinned: Worker) -> None:
        """A save onto a's key is TENANT_CONFLICT in every form, and tells nothing of the row."""
        for expected in ({}, {"expected_revision": 0}, {"expected_revision": 1}, {"expected_revision": 2}):
            code, error = refused(pinned, "save", **KEY_OF_A, **STATE, **named, **expected)
            assert code == "TENANT_CONFLICT", expected
            assert "revision" not in error
            tells_nothing_of_a(pinned)

    def test_reads_find_nothing(self, named: dict[str, str], pinned: Worker) -> None:
        """Neither get nor cached_get finds a's key, from PostgreSQL or from the cache, and neither drops the entry."""
        for action in ("get", "cached_get", "get", "cached_get"):
            for key in (KEY_OF_A, CACHED_OF_A):
                data = done(pinned, action, **key, **named)
                assert (data["found"], data["authority_source"], data["tenant_id"]) == (False, "none", "b")
        assert done(pinned, "cached_get", **KEY_OF_B, **named)["source"] == "sqlite"

    def test_lists_hold_its_own(self, named: dict[str, str], pinned: Worker) -> None:
        """List and workflows hold and count the rows of b alone, on every page."""
        listed = done(pinned, "list", workflow_id=SHARED, **named)
        assert [row["tenant_id"] for row in listed["checkpoints"]] == ["b"]
        assert listed["count"] == 1
        tells_nothing_of_a(pinned)
        assert done(pinned, "list", workflow_id=SHARED, limit=1, **named)["next_cursor"] is None
        assert done(pinned, "list", **ALL_OF_A, **named)["count"] == 0
        found = done(pinned, "workflows", **named)
        tells_nothing_of_a(pinned)
        assert sorted((row["workflow_id"], row["checkpoint_count"]) for row in found["workflows"]) == [
            (SHARED, 1),
            ("workflow of b", 1),
        ]

    def test_a_cursor_of_another_tenant_leads_nowhere(
        self, named: dict[str, str], pinned: Worker, tenants: Tenants
    ) -> None:
        """A next_cursor that a process of a was given is not one of b's lists."""
        of_a = done(tenants.everybody, "list", workflow_id=SHARED, tenant_id="a", limit=1)["next_cursor"]
        assert refused(pinned, "list", workflow_id=SHARED, cursor=of_a, **named)[0] == "INVALID_ARG"
        of_all = done(tenants.everybody, "workflows", limit=1)["next_cursor"]
        assert refused(pinned, "workflows", cursor=of_all, **named)[0] == "INVALID_ARG"

    def test_the_cache_is_not_written_over(self, named: dict[str, str], pinned: Worker) -> None:
        """An entry of a's is TENANT_CONFLICT, whether PostgreSQL knows it or not."""
        for key in (KEY_OF_A, CACHED_OF_A):
            assert refused(pinned, "cache", **key, **STATE, **named)[0] == "TENANT_CONFLICT"
            tells_nothing_of_a(pinned)

    def test_rebuild_takes_its_own(self, named: dict[str, str], pinned: Worker) -> None:
        """A rebuild, of all or of a workflow that both have, reads, counts and replaces b's alone."""
        for scope, count in (({}, 2), ({"workflow_id": SHARED}, 1), (ALL_OF_A, 0), ({"workflow_id": ""}, 2)):
            data = done(pinned, "rebuild", **scope, **named)
            assert (data["pg_read_count"], data["deleted_before"], data["rebuilt_count"]) == (count, count, count)

    def test_verify_compares_its_own(self, named: dict[str, str], pinned: Worker) -> None:
        """Verify counts b's alone on both sides; neither the answer nor the report names anything of a's."""
        for scope, count in (({}, 2), ({"workflow_id": SHARED}, 1), (ALL_OF_A, 0), ({"workflow_id": ""}, 2)):
            data = done(pinned, "verify", **scope, **named)
            assert (data["consistent"], data["pg_count"], data["sqlite_count"]) == (True, count, count)
            report = Path(data["report_path"]).read_text(encoding="utf-8")
            assert json.loads(report)["tenant_id"] == "b"
            assert "step-of-a-" not in report

    def test_deletes_take_its_own(self, named: dict[str, str], pinned: Worker) -> None:
        """Deleting a's step, a's workflow or a workflow that both have removes b's rows and entries alone."""
        assert done(pinned, "delete", **KEY_OF_A, **named)["deleted_count"] == 0
        assert done(pinned, "delete", **ALL_OF_A, all_steps=True, **named)["deleted_count"] == 0
        assert done(pinned, "delete", workflow_id=SHARED, all_steps=True, **named)["deleted_count"] == 1
        assert done(pinned, "workflows", **named)["count"] == 1

    def test_approvals_are_neither_seen_nor_decided(
        self, named: dict[str, str], pinned: Worker, tenants: Tenants
    ) -> None:
        """What waits for a's people is not listed, found, decided with its right token, or asked for anew."""
        assert done(pinned, "pending", **named)["count"] == 0
        assert not done(pinned, "get", **APPROVAL_OF_A, **named)["found"]
        for action in ("approve", "reject"):
            code, _ = refused(pinned, action, **APPROVAL_OF_A, token=tenants.token_of_a, **named)
            assert code == "APPROVAL_NOT_FOUND"
        for key in (APPROVAL_OF_A, KEY_OF_A):
            assert refused(pinned, "request_approval", **key, **ASKED_BY_A, **named)[0] == "TENANT_CONFLICT"
            tells_nothing_of_a(pinned)
        assert done(tenants.everybody, "pending", tenant_id="a")["count"] == 1

    def test_prune_takes_its_own(self, named: dict[str, str], pinned: Worker) -> None:
        """A prune counts and removes old rows of b alone."""
        assert done(pinned, "prune", older_than_sec=AN_HOUR, dry_run=True, **named)["deleted_count"] == len(OF_B)
        assert done(pinned, "prune", older_than_sec=AN_HOUR, **ALL_OF_A, **named)["deleted_count"] == 0
        assert done(pinned, "prune", older_than_sec=AN_HOUR, **named)["deleted_count"] == len(OF_B)
        assert done(pinned, "workflows", **named)["count"] == 0


def test_an_empty_tenant_is_its_own_where_that_means_absent(pinned: Worker) -> None:
    """`tenant_id: ""` on reads, list, rebuild and verify leads to b, not to everybody."""
    assert not done(pinned, "get", **KEY_OF_A, tenant_id="")["found"]
    assert not done(pinned, "cached_get", **KEY_OF_A, tenant_id="")["found"]
    assert done(pinned, "list", workflow_id=SHARED, tenant_id="")["count"] == 1
    assert done(pinned, "rebuild", tenant_id="")["tenant_id"] == "b"
    assert done(pinned, "verify", tenant_id="")["pg_count"] == len(OF_B)


def test_health_counts_its_own_entries(pinned: Worker, tenants: Tenants) -> None:
    """Healthcheck tells how many entries b has in the cache, not how many there are."""
    health = done(pinned, "healthcheck")["sqlite"]
    assert health["entries"] == len(OF_B)
    assert done(tenants.everybody, "healthcheck")["sqlite"]["entries"] > len(OF_B)


def test_what_is_its_own_works_as_ever(pinned: Worker, tenants: Tenants) -> None:
    """The tenant of the process is the default of every request: nothing has to be named."""
    saved = done(pinned, "save", workflow_id="new", step_id="s", state_data={"n": 1})
    assert saved["tenant_id"] == "b"
    assert done(pinned, "get", workflow_id="new", step_id="s")["tenant_id"] == "b"
    assert done(pinned, "cached_get", workflow_id="new", step_id="s")["source"] == "sqlite"
    assert done(pinned, "cache", workflow_id="new", step_id="lossy", state_data={})["tenant_id"] == "b"
    assert done(pinned, "cached_get", workflow_id="new", step_id="lossy")["source"] == "sqlite"
    assert done(pinned, "delete", workflow_id="new", step_id="s")["deleted_count"] == 1
    assert done(tenants.everybody, "get", workflow_id="new", step_id="s", tenant_id="b")["found"] is False


def test_expired_entries_of_another_tenant_are_left_alone_and_never_served(
    start_offline_worker: StartWorker, tenants: Tenants
) -> None:
    """Expired, with allow_stale, and with no PostgreSQL to be reached: a's entry is not b's to see, to drop, to replace."""
    env = {**tenants.settings, "CHECKPOINT_TENANT": "b", "CHECKPOINT_CACHE_TTL": "0"}
    here = start_offline_worker(env)
    assert not done(here, "cached_get", **KEY_OF_A, allow_stale=True)["found"]
    lost = start_offline_worker({**env, "DATABASE_URL": "postgresql://nobody@127.0.0.1:1/nowhere"})
    assert refused(lost, "cached_get", **KEY_OF_A, allow_stale=True)[0] == "PG_READ_ERROR"
    without = start_offline_worker({**env, "DATABASE_URL": None})
    assert refused(without, "cached_get", **KEY_OF_A, allow_stale=True)[0] == "DB_NOT_CONFIGURED"
    assert refused(without, "cache", **KEY_OF_A, **STATE)[0] == "TENANT_CONFLICT"


def test_refusals_come_in_their_order(start_offline_worker: StartWorker) -> None:
    """Arguments before the tenant, the tenant before the database (contract, section 2)."""
    worker = start_offline_worker({"CHECKPOINT_TENANT": "b"})
    assert refused(worker, "get", workflow_id="", step_id="s", tenant_id="a")[0] == "INVALID_ARG"
    assert refused(worker, "get", workflow_id="w", step_id="s", tennant_id="a")[0] == "INVALID_ARG"
    assert refused(worker, "get", workflow_id="w", step_id="s", tenant_id="a")[0] == "TENANT_DENIED"
    assert refused(worker, "get", workflow_id="w", step_id="s", tenant_id="b")[0] == "DB_NOT_CONFIGURED"
