"""Cached_get where PostgreSQL is away or refuses: hits as ever, expired entries on demand (contract, section 3, cached_get)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from psycopg import sql as text
from psycopg.conninfo import make_conninfo

from tests.support.asking import done, refused
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.gate import Gate
    from tests.support.place import Place
    from tests.support.steered_clock import SteeredClock

KEY = {"workflow_id": "wf", "step_id": "s"}
TTL_MS = 300_000


def test_the_unreachable_are_served_stale_only_on_demand(
    start_steered: StartWorker, clock: SteeredClock, gate: Gate
) -> None:
    """PostgreSQL away: a fresh entry is a hit; an expired one only with allow_stale, and then stale is true."""
    worker = start_steered({"DATABASE_URL": gate.url})
    done(worker, "save", **KEY, state_data={"n": 1})
    gate.close()
    hit = done(worker, "cached_get", **KEY, allow_stale=True)
    assert (hit["source"], hit["stale"]) == ("sqlite", False)
    clock.move(TTL_MS + 1)
    assert refused(worker, "cached_get", **KEY)[0] == "PG_READ_ERROR"
    assert refused(worker, "cached_get", **KEY, allow_stale=False)[0] == "PG_READ_ERROR"
    stale = done(worker, "cached_get", **KEY, allow_stale=True)
    assert (stale["source"], stale["stale"], stale["state_data"]) == ("sqlite", True, {"n": 1})
    assert refused(worker, "cached_get", **{**KEY, "step_id": "none"}, allow_stale=True)[0] == "PG_READ_ERROR"


def test_a_stale_entry_goes_to_its_tenant_only(start_steered: StartWorker, clock: SteeredClock, gate: Gate) -> None:
    """allow_stale does not widen the scope: another tenant's expired entry is not served."""
    worker = start_steered({"DATABASE_URL": gate.url})
    done(worker, "save", **KEY, tenant_id="one", state_data={})
    gate.close()
    clock.move(TTL_MS + 1)
    assert refused(worker, "cached_get", **KEY, tenant_id="two", allow_stale=True)[0] == "PG_READ_ERROR"
    assert done(worker, "cached_get", **KEY, tenant_id="one", allow_stale=True)["stale"] is True


def test_without_a_database_the_expired_are_served_on_demand(start_steered: StartWorker, clock: SteeredClock) -> None:
    """DATABASE_URL unset: a hit is a hit, an expired entry DB_NOT_CONFIGURED, with allow_stale it is served."""
    first = start_steered()
    done(first, "save", **KEY, state_data={"n": 1})
    first.finish()
    worker = start_steered({"DATABASE_URL": None})
    assert done(worker, "cached_get", **KEY)["source"] == "sqlite"
    clock.move(TTL_MS + 1)
    assert refused(worker, "cached_get", **KEY)[0] == "DB_NOT_CONFIGURED"
    stale = done(worker, "cached_get", **KEY, allow_stale=True)
    assert (stale["stale"], stale["state_data"]) == (True, {"n": 1})


def test_reachable_postgresql_decides_even_with_allow_stale(
    steered: Place, clock: SteeredClock, key: dict[str, str]
) -> None:
    """Where PostgreSQL answers, allow_stale changes nothing: the new value, or found false."""
    done(steered.worker, "save", **key, state_data={"n": 1})
    steered.sql.execute(
        "UPDATE workflow_checkpoints SET state_data = '{\"n\": 2}', revision = 2 WHERE workflow_id = %s",
        (key["workflow_id"],),
    )
    clock.move(TTL_MS + 1)
    row = done(steered.worker, "cached_get", **key, allow_stale=True)
    assert (row["source"], row["stale"], row["state_data"]) == ("pg", False, {"n": 2})
    steered.sql.execute("DELETE FROM workflow_checkpoints WHERE workflow_id = %s", (key["workflow_id"],))
    clock.move(TTL_MS + 1)
    assert done(steered.worker, "cached_get", **key, allow_stale=True)["source"] == "none"


def test_postgresql_that_refuses_is_not_unreachable(
    start_steered: StartWorker, clock: SteeredClock, sql: Connection, admin: Connection, database_url: str, schema: str
) -> None:
    """A server that answers, but not with rows (a grant is missing), does not make stale entries good."""
    role = f"{schema}_role"
    admin.execute(text.SQL("CREATE ROLE {} LOGIN PASSWORD 'secret'").format(text.Identifier(role)))
    try:
        owner = start_steered()
        done(owner, "save", **KEY, state_data={"n": 1})
        for grant in ("GRANT USAGE ON SCHEMA {0} TO {1}", "GRANT SELECT ON ALL TABLES IN SCHEMA {0} TO {1}"):
            admin.execute(text.SQL(grant).format(text.Identifier(schema), text.Identifier(role)))
        worker = start_steered({"DATABASE_URL": make_conninfo(database_url, user=role, password="secret")})
        assert done(worker, "get", **KEY)["found"] is True
        sql.execute(text.SQL("REVOKE SELECT ON workflow_checkpoints FROM {}").format(text.Identifier(role)))
        clock.move(TTL_MS + 1)
        assert refused(worker, "cached_get", **KEY, allow_stale=True)[0] == "PG_READ_ERROR"
    finally:
        for clean in ("DROP OWNED BY {}", "DROP ROLE {}"):
            admin.execute(text.SQL(clean).format(text.Identifier(role)))


def test_a_hit_needs_no_postgresql(start_worker: StartWorker, gate: Gate) -> None:
    """The server is away from the start: entries of that DATABASE_URL are hits, in a new process too."""
    first = start_worker({"DATABASE_URL": gate.url})
    done(first, "save", **KEY, state_data={"n": 1})
    first.finish()
    gate.close()
    second = start_worker({"DATABASE_URL": gate.url})
    row = done(second, "cached_get", **KEY)
    assert (row["source"], row["state_data"]) == ("sqlite", {"n": 1})
    assert refused(second, "get", **KEY)[0] == "PG_READ_ERROR"
    assert done(second, "cached_get", **KEY)["source"] == "sqlite"


def test_a_hit_loads_neither_the_driver_nor_what_says_no(start_worker: StartWorker, database_url: str) -> None:
    """A process that serves a hit has not imported psycopg, nor jsonschema; the first miss loads the driver."""
    first = start_worker()
    done(first, "save", **KEY, state_data={"n": 1})
    first.finish()
    worker = start_worker(argv=(sys.executable, "-X", "importtime", str(RUNNER)))
    assert done(worker, "cached_get", **KEY)["source"] == "sqlite"
    worker.finish()
    loaded = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in worker.stderr.splitlines() if "|" in line}
    assert "sqlite3" in loaded
    assert loaded.isdisjoint({"psycopg", "jsonschema", "asyncio", "logging"})
