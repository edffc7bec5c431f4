"""Delete and prune: destructive, so nothing by omission, and one tenant at a time (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done, refused

if TYPE_CHECKING:
    from tests.support.place import Place

INSERT_OLD = """
    INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data, updated_at, created_at)
    SELECT %(workflow)s, 'step ' || n, %(tenant)s, '{}', '2020-01-01Z', '2020-01-01Z' FROM generate_series(1, %(count)s) AS n
"""
YEAR = 31_536_000


def insert_old(place: Place, workflow: str, tenant: str, count: int) -> None:
    """Rows that nobody saved for years."""
    place.sql.execute(INSERT_OLD, {"workflow": workflow, "tenant": tenant, "count": count})


def rows(place: Place, workflow: str) -> int:
    """How many rows of the workflow stand in PostgreSQL."""
    statement = "SELECT count(*) FROM workflow_checkpoints WHERE workflow_id = %s"
    (count,) = place.sql.execute(statement, (workflow,)).fetchone() or (0,)
    return int(count)


@pytest.fixture
def two_tenants(place: Place, workflow: str, tenant: str) -> None:
    """A workflow with two steps of the default tenant and one of another."""
    for step in ("a", "b"):
        done(place.worker, "save", workflow_id=workflow, step_id=step, state_data={})
    done(place.worker, "save", workflow_id=workflow, step_id="c", tenant_id=tenant, state_data={})


@pytest.mark.usefixtures("two_tenants")
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"all_steps": False},
        {"all_steps": None},
        {"all_steps": "true"},
        {"step_id": ""},
        {"step_id": None},
        {"step_id": "a", "all_steps": True},
        {"all_steps": True, "tenant_id": ""},
        {"step_id": "a", "tenant_id": ""},
        {"step_id": "a", "tennant_id": "x"},
    ],
)
def test_a_delete_that_does_not_say_what_is_refused(place: Place, workflow: str, fields: dict[str, object]) -> None:
    """Without step_id only an explicit all_steps true deletes; whatever is unclear is refused, and all rows stay."""
    assert refused(place.worker, "delete", workflow_id=workflow, **fields)[0] == "INVALID_ARG"
    assert rows(place, workflow) == 3


@pytest.mark.usefixtures("two_tenants")
def test_a_delete_takes_one_step(place: Place, workflow: str) -> None:
    """One step goes, also from the cache; deleting it again deletes nothing and is a success."""
    answer = done(place.worker, "delete", workflow_id=workflow, step_id="a")
    assert answer == {"workflow_id": workflow, "step_id": "a", "tenant_id": "default", "deleted_count": 1}
    assert done(place.worker, "cached_get", workflow_id=workflow, step_id="a")["source"] == "none"
    assert done(place.worker, "cached_get", workflow_id=workflow, step_id="b")["source"] == "sqlite"
    assert done(place.worker, "delete", workflow_id=workflow, step_id="a")["deleted_count"] == 0
    assert rows(place, workflow) == 2


@pytest.mark.usefixtures("two_tenants")
def test_a_delete_of_all_steps_takes_those_of_one_tenant(place: Place, workflow: str, tenant: str) -> None:
    """all_steps means all of the tenant's, the default one where none is named."""
    answer = done(place.worker, "delete", workflow_id=workflow, all_steps=True)
    assert (answer["deleted_count"], answer["step_id"]) == (2, None)
    assert done(place.worker, "cached_get", workflow_id=workflow, step_id="a")["found"] is False
    assert done(place.worker, "cached_get", workflow_id=workflow, step_id="c")["source"] == "sqlite"
    assert done(place.worker, "delete", workflow_id=workflow, all_steps=True, tenant_id=tenant)["deleted_count"] == 1
    assert rows(place, workflow) == 0


@pytest.mark.usefixtures("two_tenants")
def test_a_delete_of_another_tenants_step_deletes_nothing(place: Place, workflow: str) -> None:
    """Another tenant's row is not there for a delete; it stays, in the cache too."""
    assert done(place.worker, "delete", workflow_id=workflow, step_id="c")["deleted_count"] == 0
    assert rows(place, workflow) == 3
    assert done(place.worker, "cached_get", workflow_id=workflow, step_id="c")["source"] == "sqlite"


@pytest.mark.usefixtures("two_tenants")
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"older_than_sec": 0},
        {"older_than_sec": -1},
        {"older_than_sec": "60"},
        {"older_than_sec": 1.5},
        {"older_than_sec": 10**30},
        {"older_than_sec": 1, "tenant_id": ""},
        {"older_than_sec": 1, "workflow_id": ""},
        {"older_than_sec": 1, "tenant_id": "default", "all_tenants": True},
        {"older_than_sec": 1, "all_tenants": "yes"},
        {"older_than_sec": 1, "older_then_sec": 1},
    ],
)
def test_a_prune_that_does_not_say_what_is_refused(place: Place, workflow: str, fields: dict[str, object]) -> None:
    """The age is a whole number of seconds from 1; whatever is unclear is refused, and all rows stay."""
    assert refused(place.worker, "prune", **fields)[0] == "INVALID_ARG"
    assert rows(place, workflow) == 3


def test_a_prune_takes_only_what_is_old_enough(place: Place, workflow: str, tenant: str) -> None:
    """Rows not saved for longer than the age go; a row saved since stays, however old its first save is."""
    insert_old(place, workflow, tenant, 3)
    done(place.worker, "save", workflow_id=workflow, step_id="step 2", tenant_id=tenant, state_data={})
    answer = done(place.worker, "prune", older_than_sec=YEAR, tenant_id=tenant)
    assert answer == {"workflow_id": None, "tenant_id": tenant, "deleted_count": 2, "dry_run": False}
    assert done(place.worker, "get", workflow_id=workflow, step_id="step 2")["found"] is True
    assert rows(place, workflow) == 1


def test_a_prune_keeps_to_its_tenant_and_workflow(place: Place, workflow: str, tenant: str) -> None:
    """Without a tenant it is the default one; a workflow narrows it further."""
    insert_old(place, workflow, tenant, 2)
    insert_old(place, f"{workflow} other", tenant, 2)
    assert done(place.worker, "prune", older_than_sec=1, workflow_id=workflow)["deleted_count"] == 0
    assert done(place.worker, "prune", older_than_sec=1, workflow_id=workflow, tenant_id=tenant)["deleted_count"] == 2
    assert (rows(place, workflow), rows(place, f"{workflow} other")) == (0, 2)


def test_a_prune_of_all_tenants_says_so(place: Place, workflow: str, tenant: str) -> None:
    """all_tenants true takes the old rows of every tenant, here within one workflow."""
    insert_old(place, workflow, tenant, 2)
    insert_old(place, workflow + "2", "default", 1)
    place.sql.execute(
        "UPDATE workflow_checkpoints SET workflow_id = %s, step_id = 'other' WHERE workflow_id = %s",
        (workflow, workflow + "2"),
    )
    answer = done(place.worker, "prune", older_than_sec=YEAR, workflow_id=workflow, all_tenants=True)
    assert (answer["deleted_count"], answer["tenant_id"]) == (3, None)
    assert rows(place, workflow) == 0


def test_a_dry_run_counts_and_deletes_nothing(place: Place, workflow: str, tenant: str) -> None:
    """dry_run tells how many would go, and none goes, from the cache neither."""
    insert_old(place, workflow, tenant, 4)
    done(place.worker, "rebuild", tenant_id=tenant)
    answer = done(place.worker, "prune", older_than_sec=YEAR, tenant_id=tenant, dry_run=True)
    assert (answer["deleted_count"], answer["dry_run"]) == (4, True)
    assert rows(place, workflow) == 4
    assert done(place.worker, "cached_get", workflow_id=workflow, step_id="step 1")["source"] == "sqlite"
    assert done(place.worker, "prune", older_than_sec=YEAR, tenant_id=tenant)["deleted_count"] == 4


def test_a_large_prune_takes_everything_in_chunks(place: Place, workflow: str, tenant: str) -> None:
    """2500 old rows go, in transactions of their own that are not one, and from the cache as well."""
    insert_old(place, workflow, tenant, 2500)
    assert done(place.worker, "rebuild", tenant_id=tenant)["rebuilt_count"] == 2500
    place.sql.execute("CREATE TABLE IF NOT EXISTS deletions (xid xid8)")
    place.sql.execute(
        "CREATE OR REPLACE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN INSERT INTO {schema_of(place)}.deletions VALUES (pg_catalog.pg_current_xact_id()); RETURN NULL; END $$"
    )
    place.sql.execute(
        "CREATE TRIGGER noted AFTER DELETE ON workflow_checkpoints FOR EACH ROW EXECUTE FUNCTION note_deletion()"
    )
    try:
        assert done(place.worker, "prune", older_than_sec=YEAR, tenant_id=tenant)["deleted_count"] == 2500
        chunks = place.sql.execute("SELECT count(*) FROM deletions GROUP BY xid").fetchall()
    finally:
        place.sql.execute("DROP TRIGGER noted ON workflow_checkpoints")
    assert len(chunks) > 1
    assert sum(size for (size,) in chunks) == 2500
    assert rows(place, workflow) == 0
    after = done(place.worker, "verify", tenant_id=tenant)
    assert (after["consistent"], after["pg_count"], after["sqlite_count"]) == (True, 0, 0)


def test_a_prune_that_fails_says_how_many_are_gone(place: Place, workflow: str, tenant: str) -> None:
    """A failure in a later chunk is PG_WRITE_ERROR, the message has the number deleted before, and the cache follows."""
    insert_old(place, workflow, tenant, 2500)
    done(place.worker, "rebuild", tenant_id=tenant)
    place.sql.execute(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
        " IF OLD.step_id = 'step 999' THEN RAISE EXCEPTION 'not this one'; END IF; RETURN OLD; END $$"
    )
    place.sql.execute(
        "CREATE TRIGGER refused BEFORE DELETE ON workflow_checkpoints FOR EACH ROW EXECUTE FUNCTION refuse()"
    )
    try:
        code, error = refused(place.worker, "prune", older_than_sec=YEAR, tenant_id=tenant)
    finally:
        place.sql.execute("DROP TRIGGER refused ON workflow_checkpoints")
    gone = 2500 - rows(place, workflow)
    assert 0 < gone < 2500
    assert (code, str(gone) in error) == ("PG_WRITE_ERROR", True)
    assert "not this one" not in error or "step" not in error
    after = done(place.worker, "verify", tenant_id=tenant)
    assert (after["consistent"], after["pg_count"]) == (True, 2500 - gone)
    assert done(place.worker, "prune", older_than_sec=YEAR, tenant_id=tenant)["deleted_count"] == 2500 - gone


def test_a_prune_leaves_waiting_approvals_alone(place: Place, workflow: str, tenant: str) -> None:
    """A row that waits for a person is not pruned, however old; a decided one is."""
    insert_old(place, workflow, tenant, 3)
    place.sql.execute(
        "UPDATE workflow_checkpoints SET kind = 'approval', awaiting_since = CASE step_id WHEN 'step 1' THEN updated_at END"
        " WHERE workflow_id = %s AND step_id <> 'step 3'",
        (workflow,),
    )
    assert done(place.worker, "prune", older_than_sec=1, tenant_id=tenant, dry_run=True)["deleted_count"] == 2
    assert done(place.worker, "prune", older_than_sec=1, tenant_id=tenant)["deleted_count"] == 2
    assert done(place.worker, "get", workflow_id=workflow, step_id="step 1")["found"] is True


def schema_of(place: Place) -> str:
    """The schema of the place."""
    return str(place.settings["CHECKPOINT_SCHEMA"])
