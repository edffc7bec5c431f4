"""Cached_get: which entries are served without asking PostgreSQL, and which not (contract, section 3, cached_get)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.asking import done, refused
from tests.support.cache_file import cached_state, places_without_cache, query
from tests.support.process import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.place import Place
    from tests.support.steered_clock import SteeredClock

KEY = {"workflow_id": "wf", "step_id": "s"}
TTL_MS = 300_000
UNREACHABLE = "postgresql://127.0.0.1:9/nothing"


def test_a_hit_is_the_row_with_its_age(place: Place, key: dict[str, str]) -> None:
    """A hit has every field of get, and cached_at; from PostgreSQL cached_at is null."""
    done(place.worker, "save", **key, state_data={"n": 1})
    row = done(place.worker, "get", **key)
    del row["authority_source"]
    hit = done(place.worker, "cached_get", **key)
    assert hit.pop("cached_at") is not None
    assert hit == {**row, "source": "sqlite", "authority_source": "sqlite", "backfilled": False, "stale": False}
    query(place.folder, "DELETE FROM checkpoint_cache WHERE workflow_id = ?", key["workflow_id"])
    miss = done(place.worker, "cached_get", **key)
    told = {"source": "pg", "authority_source": "pg", "backfilled": True, "stale": False, "cached_at": None}
    assert miss == {**row, **told}


def test_nothing_anywhere_is_a_success(place: Place, key: dict[str, str]) -> None:
    """In neither: found false, source none, backfilled false."""
    told = {"found": False, "source": "none", "authority_source": "none", "backfilled": False, "stale": False}
    assert done(place.worker, "cached_get", **key) == {**key, **told, "tenant_id": None}


def test_an_entry_is_served_up_to_its_ttl(steered: Place, clock: SteeredClock, key: dict[str, str]) -> None:
    """Not older than CHECKPOINT_CACHE_TTL: a hit. Older: PostgreSQL, and the age begins anew."""
    done(steered.worker, "save", **key, state_data={"n": 1})
    clock.move(TTL_MS)
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"
    clock.move(1)
    again = done(steered.worker, "cached_get", **key)
    assert (again["source"], again["backfilled"]) == ("pg", True)
    clock.move(TTL_MS)
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"


def test_a_fraction_of_a_second_is_a_ttl(start_steered: StartWorker, clock: SteeredClock) -> None:
    """Ages are compared in milliseconds, not in whole seconds."""
    worker = start_steered({"CHECKPOINT_CACHE_TTL": "0.5"})
    done(worker, "save", **KEY, state_data={"n": 1})
    clock.move(499)
    assert done(worker, "cached_get", **KEY)["source"] == "sqlite"
    clock.move(2)
    assert done(worker, "cached_get", **KEY)["source"] == "pg"


def test_a_ttl_of_zero_serves_nothing(start_steered: StartWorker) -> None:
    """With CHECKPOINT_CACHE_TTL 0 every entry counts as expired, in its very first moment too."""
    worker = start_steered({"CHECKPOINT_CACHE_TTL": "0"})
    done(worker, "save", **KEY, state_data={"n": 1})
    for _ in range(3):
        row = done(worker, "cached_get", **KEY)
        assert (row["source"], row["backfilled"], row["stale"]) == ("pg", True, False)


def test_a_clock_that_went_back_counts_as_expired(steered: Place, clock: SteeredClock, key: dict[str, str]) -> None:
    """An entry from the future is not served; once filled again under the new time it is."""
    done(steered.worker, "save", **key, state_data={"n": 1})
    clock.move(-1)
    assert done(steered.worker, "cached_get", **key)["source"] == "pg"
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"
    clock.move(-86_400_000)
    assert done(steered.worker, "cached_get", **key)["source"] == "pg"
    clock.move(10)
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"


def test_every_read_from_postgresql_renews_the_age_but_no_hit_does(
    steered: Place, clock: SteeredClock, key: dict[str, str]
) -> None:
    """The age counts since PostgreSQL answered: hits do not make an entry younger, a save does."""
    done(steered.worker, "save", **key, state_data={"n": 1})
    clock.move(TTL_MS - 10)
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"
    clock.move(20)
    assert done(steered.worker, "cached_get", **key)["source"] == "pg"
    clock.move(TTL_MS - 10)
    done(steered.worker, "save", **key, state_data={"n": 2})
    clock.move(TTL_MS - 10)
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"


def test_a_left_over_goes(steered: Place, clock: SteeredClock, key: dict[str, str]) -> None:
    """A row that another program deleted: once PostgreSQL says so, the entry is removed."""
    done(steered.worker, "save", **key, state_data={"n": 1})
    steered.sql.execute("DELETE FROM workflow_checkpoints WHERE workflow_id = %s", (key["workflow_id"],))
    assert done(steered.worker, "cached_get", **key)["source"] == "sqlite"
    clock.move(TTL_MS + 1)
    assert done(steered.worker, "cached_get", **key)["source"] == "none"
    assert cached_state(steered.folder, **key) is None


def test_a_left_over_of_another_tenant_stays(steered: Place, clock: SteeredClock, key: dict[str, str]) -> None:
    """A request that names its tenant removes no entry of another one."""
    done(steered.worker, "save", **key, tenant_id="one", state_data={"n": 1})
    steered.sql.execute("DELETE FROM workflow_checkpoints WHERE workflow_id = %s", (key["workflow_id"],))
    clock.move(TTL_MS + 1)
    assert done(steered.worker, "cached_get", **key, tenant_id="two")["found"] is False
    assert cached_state(steered.folder, **key) == {"n": 1}
    assert done(steered.worker, "cached_get", **key, tenant_id="one")["found"] is False
    assert cached_state(steered.folder, **key) is None


def test_a_hit_goes_to_its_tenant_only(place: Place, key: dict[str, str], tenant: str) -> None:
    """A cached row of a tenant is a hit for it and for a request that names none, and nothing for another."""
    done(place.worker, "save", **key, tenant_id=tenant, state_data={"n": 1})
    assert done(place.worker, "cached_get", **key, tenant_id=tenant)["source"] == "sqlite"
    assert done(place.worker, "cached_get", **key)["source"] == "sqlite"
    assert done(place.worker, "cached_get", **key, tenant_id="default")["source"] == "none"
    assert done(place.worker, "cached_get", **key, tenant_id=tenant)["source"] == "sqlite"


def test_a_row_that_changed_its_tenant_is_not_served_to_the_former(
    steered: Place, clock: SteeredClock, key: dict[str, str]
) -> None:
    """Another program gives a row to another tenant: once PostgreSQL was asked, the former one gets it no more."""
    done(steered.worker, "save", **key, tenant_id="one", state_data={"n": 1})
    steered.sql.execute(
        "UPDATE workflow_checkpoints SET tenant_id = 'two', revision = revision + 1 WHERE workflow_id = %s",
        (key["workflow_id"],),
    )
    clock.move(TTL_MS + 1)
    assert done(steered.worker, "cached_get", **key)["tenant_id"] == "two"
    clock.move(1)
    assert done(steered.worker, "cached_get", **key, tenant_id="one")["found"] is False
    assert done(steered.worker, "cached_get", **key, tenant_id="two")["source"] == "sqlite"


def test_where_no_cache_can_be_postgresql_serves(start_worker: StartWorker, tmp_path: Path) -> None:
    """A data folder in which no cache file can be made: every action that needs none works, cache_written is false."""
    for place in places_without_cache(tmp_path / "places").values():
        worker = start_worker({"CHECKPOINT_DATA_DIR": str(place), "CHECKPOINT_CACHE_WAIT_MS": "0"})
        step = {"workflow_id": "wf", "step_id": str(place)}
        assert done(worker, "save", **step, state_data={"n": 1})["cache_written"] is False
        row = done(worker, "cached_get", **step)
        assert (row["source"], row["backfilled"], row["state_data"]) == ("pg", False, {"n": 1})
        assert done(worker, "list", workflow_id="wf", tenant_id="default")["count"] >= 1
        assert refused(worker, "rebuild")[0] == "REBUILD_FAILED"
        assert refused(worker, "verify")[0] == "VERIFY_FAILED"
        assert done(worker, "delete", **step)["deleted_count"] == 1
        assert done(worker, "cached_get", **step)["found"] is False
        assert done(worker, "healthcheck")["sqlite"]["ok"] is False


def test_a_place_that_was_mended_is_used_at_once(start_worker: StartWorker, tmp_path: Path) -> None:
    """What stood in the way is removed while the worker runs: the cache works, and holds what was saved meanwhile."""
    place = places_without_cache(tmp_path / "places")["a folder named cache.db"]
    worker = start_worker({"CHECKPOINT_DATA_DIR": str(place)})
    done(worker, "save", **KEY, state_data={"n": 1})
    (place / "cache.db").rmdir()
    until(lambda: done(worker, "cached_get", **KEY)["source"] == "sqlite", "the cache works")


def test_errors_are_never_cached(start_worker: StartWorker) -> None:
    """A failure to read leaves nothing in the cache: the next process with PostgreSQL gives the row."""
    assert refused(start_worker({"DATABASE_URL": UNREACHABLE}), "cached_get", **KEY)[0] == "PG_READ_ERROR"
    worker = start_worker()
    assert done(worker, "cached_get", **KEY)["source"] == "none"
    done(worker, "save", **KEY, state_data={})
    assert done(worker, "cached_get", **KEY)["source"] == "sqlite"
