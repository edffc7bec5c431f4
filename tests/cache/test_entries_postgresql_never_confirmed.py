"""`cache`: SQLite only; PostgreSQL does not know such an entry (contract, section 3, cache)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.asking import done, refused
from tests.support.cache_file import cached_state, places_without_cache
from tests.support.place import NO_HURRY

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.place import Place
    from tests.support.steered_clock import SteeredClock

UNKNOWN = {"id": None, "revision": None, "created_at": None, "updated_at": None}


def test_it_is_served_with_what_is_unknown_null(place: Place, key: dict[str, str]) -> None:
    """The entry is a hit; id, revision and PostgreSQL's times are null, cached_at is what `cache` told."""
    written = done(place.worker, "cache", **key, state_data={"a": [1.0]})
    assert (written["written"], written["lossy"], written["tenant_id"]) == (True, True, "default")
    assert done(place.worker, "cached_get", **key) == {
        **key,
        **UNKNOWN,
        "tenant_id": "default",
        "found": True,
        "source": "sqlite",
        "authority_source": "sqlite",
        "backfilled": False,
        "stale": False,
        "state_data": {"a": [1.0]},
        "cached_at": written["cached_at"],
    }
    assert done(place.worker, "get", **key)["found"] is False


def test_a_second_one_replaces_the_first(place: Place, key: dict[str, str]) -> None:
    """The same tenant may cache the key again."""
    for number in range(3):
        assert done(place.worker, "cache", **key, state_data={"n": number})["written"] is True
    assert done(place.worker, "cached_get", **key)["state_data"] == {"n": 2}


def test_the_next_save_replaces_it(place: Place, key: dict[str, str]) -> None:
    """A save of the key takes its place, with id and revision."""
    done(place.worker, "cache", **key, state_data={"n": "lossy"})
    saved = done(place.worker, "save", **key, state_data={"n": "kept"})
    row = done(place.worker, "cached_get", **key)
    assert (row["source"], row["state_data"], row["revision"], row["id"]) == ("sqlite", {"n": "kept"}, 1, saved["id"])


def test_it_may_stand_before_a_saved_one_until_the_next_save(place: Place, key: dict[str, str]) -> None:
    """Cached over a saved state it is what cached_get gives; get gives the saved one; the next save replaces it again."""
    done(place.worker, "save", **key, state_data={"n": 1})
    done(place.worker, "cache", **key, state_data={"n": "lossy"})
    assert done(place.worker, "cached_get", **key)["state_data"] == {"n": "lossy"}
    assert done(place.worker, "get", **key)["state_data"] == {"n": 1}
    done(place.worker, "save", **key, state_data={"n": 2})
    assert done(place.worker, "cached_get", **key)["state_data"] == {"n": 2}


def test_one_of_another_process_does_not_stand_before_what_this_one_saved(
    place: Place, start_worker: StartWorker, key: dict[str, str]
) -> None:
    """It cannot be told from an older copy of the file: PostgreSQL is asked."""
    done(place.worker, "save", **key, state_data={"n": 1})
    done(start_worker(place.settings), "cache", **key, state_data={"n": "lossy"})
    row = done(place.worker, "cached_get", **key)
    assert (row["source"], row["state_data"]) == ("pg", {"n": 1})


def test_another_tenants_entry_is_not_overwritten(place: Place, key: dict[str, str], tenant: str) -> None:
    """An entry of another tenant under the key, confirmed or not: TENANT_CONFLICT, and it stays; nothing of it is told."""
    confirmed = {**key, "step_id": "confirmed"}
    done(place.worker, "cache", **key, tenant_id=tenant, state_data={"n": "theirs"})
    done(place.worker, "save", **confirmed, tenant_id=tenant, state_data={"n": "theirs"})
    for where in (key, confirmed):
        code, error = refused(place.worker, "cache", **where, state_data={"n": "mine"})
        assert code == "TENANT_CONFLICT"
        assert tenant not in error
        assert "theirs" not in error
        row = done(place.worker, "cached_get", **where, tenant_id=tenant)
        assert (row["source"], row["state_data"]) == ("sqlite", {"n": "theirs"})


def test_only_its_tenant_gets_it(place: Place, key: dict[str, str], tenant: str) -> None:
    """Unconfirmed, it goes to a request that names its tenant; to none that names another, or none at all."""
    done(place.worker, "cache", **key, tenant_id=tenant, state_data={"n": 1})
    for scope in ({"tenant_id": "default"}, {"tenant_id": f"{tenant}x"}, {}, {"tenant_id": ""}):
        assert done(place.worker, "cached_get", **key, **scope)["found"] is False
    assert done(place.worker, "cached_get", **key, tenant_id=tenant)["state_data"] == {"n": 1}


def test_an_unscoped_request_gets_that_of_the_default_tenant(place: Place, key: dict[str, str]) -> None:
    """The default tenant's entry goes to a request that names no tenant, and to one that names it."""
    done(place.worker, "cache", **key, state_data={"n": 1})
    assert done(place.worker, "cached_get", **key, tenant_id="")["state_data"] == {"n": 1}
    assert done(place.worker, "cached_get", **key, tenant_id="default")["state_data"] == {"n": 1}


def test_another_tenants_request_does_not_remove_it(place: Place, key: dict[str, str], tenant: str) -> None:
    """A request of another tenant that finds nothing leaves the entry alone."""
    done(place.worker, "cache", **key, tenant_id=tenant, state_data={"n": 1})
    done(place.worker, "cached_get", **key, tenant_id="default")
    assert cached_state(place.folder, **key) == {"n": 1}


def test_it_does_not_hide_what_postgresql_has_from_others(place: Place, key: dict[str, str], tenant: str) -> None:
    """Another tenant's unconfirmed entry under the key: an unscoped cached_get gives the row of PostgreSQL."""
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data) VALUES (%s, %s, '{\"n\": 1}')",
        (key["workflow_id"], key["step_id"]),
    )
    done(place.worker, "cache", **key, tenant_id=tenant, state_data={"n": "theirs"})
    row = done(place.worker, "cached_get", **key)
    assert (row["source"], row["state_data"], row["tenant_id"]) == ("pg", {"n": 1}, "default")


def test_it_expires_and_then_it_goes(steered: Place, clock: SteeredClock, key: dict[str, str]) -> None:
    """Older than the TTL and unknown to PostgreSQL it is found no more, and the left-over is removed."""
    done(steered.worker, "cache", **key, state_data={"n": 1})
    clock.move(299_999)
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"
    clock.move(2)
    assert done(steered.worker, "cached_get", **key)["source"] == "none"
    assert cached_state(steered.folder, **key) is None


def test_it_needs_no_postgresql(start_offline_worker: StartWorker) -> None:
    """Without DATABASE_URL it is written and served, also by the next process."""
    key = {"workflow_id": "wf", "step_id": "s"}
    first = start_offline_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    assert done(first, "cache", **key, state_data={"n": 1})["written"] is True
    first.finish()
    assert done(start_offline_worker(), "cached_get", **key)["state_data"] == {"n": 1}


def test_where_no_cache_can_be_it_is_not_written(start_offline_worker: StartWorker, tmp_path: Path) -> None:
    """A cache that cannot be written is no error: written false, cached_at null."""
    for place in places_without_cache(tmp_path / "places").values():
        worker = start_offline_worker({"CHECKPOINT_DATA_DIR": str(place)})
        answer = done(worker, "cache", workflow_id="wf", step_id="s", state_data={})
        assert (answer["written"], answer["cached_at"], answer["lossy"]) == (False, None, True)


def test_verify_tells_it_apart(place: Place, workflow: str) -> None:
    """Alone in the cache it is cache_only; beside a row of PostgreSQL with another state it is no_revision."""
    done(place.worker, "cache", workflow_id=workflow, step_id="alone", state_data={})
    done(place.worker, "save", workflow_id=workflow, step_id="both", state_data={"n": 1})
    done(place.worker, "cache", workflow_id=workflow, step_id="both", state_data={"n": 2})
    found = done(place.worker, "verify", workflow_id=workflow)
    assert found["mismatches"] == {
        "cache_only": [{"workflow_id": workflow, "step_id": "alone"}],
        "pg_only": [],
        "data_mismatch": [{"workflow_id": workflow, "step_id": "both", "reason": "no_revision"}],
    }
