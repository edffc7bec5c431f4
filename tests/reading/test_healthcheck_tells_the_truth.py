"""Healthcheck: what works and what does not, always as a success (contract, section 3, healthcheck)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psycopg.conninfo import make_conninfo

from checkpoint import __version__
from tests.support.asking import done, refused
from tests.support.cache_file import NAME, places_without_cache

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.place import Place

PASSWORD = "do-not-tell-anybody"


def test_a_serving_pair_is_described(place: Place, workflow: str) -> None:
    """PostgreSQL: configured, ok, writable, its version and tables. SQLite: the file, what it holds, its mode."""
    done(place.worker, "save", workflow_id=workflow, step_id="s", state_data={})
    health = done(place.worker, "healthcheck")
    pg, sqlite = health["pg"], health["sqlite"]
    assert (pg["configured"], pg["ok"], pg["writable"], pg["error"]) == (True, True, True, None)
    (version,) = place.sql.execute("SHOW server_version").fetchone() or ("",)
    (durable,) = place.sql.execute(
        "SELECT current_setting('fsync') = 'on' AND current_setting('synchronous_commit') <> 'off'"
    ).fetchone() or (None,)
    (tables,) = place.sql.execute("SELECT max(version) FROM workflow_checkpoint_migrations").fetchone() or (None,)
    assert (pg["server_version"], pg["durable"], pg["schema_version"]) == (version, durable, tables)
    assert pg["row_security"] is False
    assert pg["latency_ms"] > 0
    assert isinstance(pg["address"], str)
    assert health["status"] == ("ok" if durable else "degraded")
    assert (sqlite["ok"], sqlite["error"], sqlite["journal_mode"]) == (True, None, "wal")
    assert sqlite["path"] == str(place.folder / NAME)
    assert sqlite["entries"] >= 1
    assert sqlite["size_bytes"] >= 4096
    assert health["version"] == __version__
    assert health["uptime_sec"] > 0


def test_a_server_that_does_not_keep_writes_is_degraded(
    start_worker: StartWorker, database_url: str, schema: str, sql: Connection
) -> None:
    """With synchronous_commit off the answer is durable false and status degraded."""
    url = make_conninfo(database_url, options="-c synchronous_commit=off")
    worker = start_worker({"DATABASE_URL": url})
    health = done(worker, "healthcheck")
    assert (health["pg"]["ok"], health["pg"]["durable"], health["status"]) == (True, False, "degraded")


def test_a_server_that_only_reads_is_down(start_worker: StartWorker, database_url: str) -> None:
    """A session that cannot write, as after a fail-over, is not ok, and the status is down."""
    assert done(start_worker(), "healthcheck")["pg"]["ok"] is True
    worker = start_worker({"DATABASE_URL": make_conninfo(database_url, options="-c default_transaction_read_only=on")})
    health = done(worker, "healthcheck")
    assert (health["pg"]["ok"], health["pg"]["writable"], health["status"]) == (False, False, "down")
    assert health["pg"]["error"]


def test_a_server_that_is_away_is_down_and_no_secret_is_told(start_worker: StartWorker) -> None:
    """Nothing answers at the address: status down, the reason in words, the address without the password."""
    worker = start_worker({"DATABASE_URL": f"postgresql://somebody:{PASSWORD}@127.0.0.1:9/checkpoints"})
    health = done(worker, "healthcheck")
    pg = health["pg"]
    assert (pg["configured"], pg["ok"], health["status"]) == (True, False, "down")
    assert pg["error"]
    assert "127.0.0.1" in pg["address"]
    assert PASSWORD not in worker.raw[-1].decode()
    assert PASSWORD not in worker.stderr


def test_without_a_database_the_status_is_degraded(start_offline_worker: StartWorker) -> None:
    """DATABASE_URL unset: configured false, the cache alone works, degraded."""
    health = done(start_offline_worker(), "healthcheck")
    assert (health["pg"]["configured"], health["pg"]["ok"], health["status"]) == (False, False, "degraded")
    assert health["sqlite"]["ok"] is True


def test_a_cache_that_cannot_be_is_degraded(
    start_worker: StartWorker, tmp_path: Path, database: str, admin: Connection
) -> None:
    """Where no cache file can be, sqlite is not ok and says why; the rest serves."""
    place = places_without_cache(tmp_path / "places")["a folder named cache.db"]
    worker = start_worker({"DATABASE_URL": database, "CHECKPOINT_DATA_DIR": str(place)})
    health = done(worker, "healthcheck")
    assert (health["sqlite"]["ok"], health["status"]) == (False, "degraded")
    assert health["sqlite"]["error"]
    assert health["sqlite"]["path"] == str(place / NAME)


def test_the_counters_count(place: Place, start_offline_worker: StartWorker, workflow: str) -> None:
    """Requests, this one included, errors by code, hits and misses of the cache, of this process alone."""
    worker = start_offline_worker(place.settings)
    key = {"workflow_id": workflow, "step_id": "s"}
    done(worker, "save", **key, state_data={})
    done(worker, "cached_get", **key)
    done(worker, "cached_get", **key)
    done(worker, "cached_get", workflow_id=workflow, step_id="none")
    refused(worker, "save", **key)
    refused(worker, "save", **key, state_data={}, expected_revision=0)
    refused(worker, "no such action")
    assert done(worker, "healthcheck")["counters"] == {
        "requests": 8,
        "errors": {"INVALID_ARG": 1, "REVISION_CONFLICT": 1, "UNKNOWN_ACTION": 1},
        "cache_hits": 2,
        "cache_misses": 1,
        "cache_write_failures": 0,
    }
