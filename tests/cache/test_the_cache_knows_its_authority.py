"""The cache belongs to one authority: what another database said is a miss (contract, section 3, cached_get)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from psycopg import sql as text
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.asking import done, refused
from tests.support.database import fresh_database, fresh_schema
from tests.support.place import NO_HURRY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.gate import Gate
    from tests.support.steered_clock import SteeredClock

KEY = {"workflow_id": "wf", "step_id": "s"}
ALONE = {"workflow_id": "wf", "step_id": "only in the first"}


@pytest.fixture
def other(admin: Connection, database_url: str) -> Iterator[dict[str, str]]:
    """Settings that lead to another store of the same server."""
    with fresh_database(admin, database_url) as url:
        yield {"DATABASE_URL": url, "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}


@pytest.fixture(params=["database", "schema"])
def other_of_each_kind(
    request: pytest.FixtureRequest, admin: Connection, database_url: str
) -> Iterator[dict[str, str]]:
    """Settings that lead to another store of the same server."""
    if request.param == "database":
        with fresh_database(admin, database_url) as url:
            yield {"DATABASE_URL": url, "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}
    else:
        with fresh_schema(admin) as schema:
            yield {"CHECKPOINT_SCHEMA": schema, "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}


def test_two_stores_on_one_cache_never_mix(start_worker: StartWorker, other_of_each_kind: dict[str, str]) -> None:
    """Two workers, one cache file, two stores: each gets its own values only, however they take turns."""
    one, two = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}), start_worker(other_of_each_kind)
    done(one, "save", **ALONE, state_data={"of": "one"})
    for number in range(3):
        for name, worker in (("one", one), ("two", two)):
            done(worker, "save", **KEY, state_data={"of": name, "n": number})
            assert done(worker, "cached_get", **KEY)["state_data"] == {"of": name, "n": number}
        row = done(one, "cached_get", **KEY)
        assert (row["source"], row["state_data"]) == ("pg", {"of": "one", "n": number})
    for action in ({}, {"allow_stale": True}, {"tenant_id": "default"}):
        assert done(two, "cached_get", **ALONE, **action)["found"] is False


def test_a_rebuild_makes_the_cache_that_of_its_store(start_worker: StartWorker, other: dict[str, str]) -> None:
    """After a change of the store a rebuild leaves nothing of the former one, and verify is consistent."""
    one = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(one, "save", **ALONE, state_data={"of": "one"})
    done(one, "save", **KEY, state_data={"of": "one"})
    one.finish()
    two = start_worker(other)
    done(two, "save", **KEY, state_data={"of": "two"})
    done(two, "rebuild")
    after = done(two, "verify")
    assert (after["consistent"], after["pg_count"], after["sqlite_count"]) == (True, 1, 1)
    assert done(two, "cached_get", **KEY)["state_data"] == {"of": "two"}


def test_another_stores_entry_does_not_stand_in_the_way(start_worker: StartWorker, other: dict[str, str]) -> None:
    """An entry of another store is a miss for `cache` too: no TENANT_CONFLICT tells of it."""
    one = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(one, "save", **KEY, tenant_id="tenant of one", state_data={})
    one.finish()
    two = start_worker(other)
    done(two, "get", **KEY)
    assert done(two, "cache", **KEY, state_data={"of": "two"})["written"] is True
    assert done(two, "cached_get", **KEY)["state_data"] == {"of": "two"}


def test_an_unreachable_store_gets_nothing_of_another(start_worker: StartWorker, gate: Gate) -> None:
    """Under a DATABASE_URL whose server is away no entry of another one is served, not even stale."""
    one = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(one, "save", **KEY, state_data={"of": "one"})
    gate.close()
    two = start_worker({"DATABASE_URL": gate.url})
    assert refused(two, "cached_get", **KEY)[0] == "PG_READ_ERROR"
    assert refused(two, "cached_get", **KEY, allow_stale=True)[0] == "PG_READ_ERROR"


def test_the_spelling_of_the_url_does_not_matter(start_worker: StartWorker, database_url: str) -> None:
    """The same hosts, port and database, written as key=value pairs or with another application name, are the same store."""
    first = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(first, "save", **KEY, state_data={})
    first.finish()
    pairs = make_conninfo("", **conninfo_to_dict(database_url), application_name="another")
    for url in (pairs, f"{database_url}{'&' if '?' in database_url else '?'}application_name=third"):
        assert done(start_worker({"DATABASE_URL": url}), "cached_get", **KEY)["source"] == "sqlite"


def test_a_database_made_anew_under_a_running_worker_brings_nothing_back(
    start_worker: StartWorker, database: str, admin: Connection
) -> None:
    """Dropped and created again under its name: after the next contact with PostgreSQL no old entry is served."""
    settings = {"DATABASE_URL": database, "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}
    worker = start_worker(settings)
    for _ in range(3):
        done(worker, "save", **KEY, state_data={"life": 1})
    done(worker, "save", **ALONE, state_data={"life": 1})
    name = text.Identifier(str(conninfo_to_dict(database)["dbname"]))
    admin.execute(text.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    admin.execute(text.SQL("CREATE DATABASE {} TEMPLATE template0").format(name))
    assert done(worker, "get", **KEY)["found"] is False
    assert done(worker, "cached_get", **ALONE)["found"] is False
    done(worker, "save", **KEY, state_data={"life": 2})
    row = done(worker, "cached_get", **KEY)
    assert (row["source"], row["state_data"], row["revision"]) == ("sqlite", {"life": 2}, 1)
    assert done(start_worker(settings), "cached_get", **KEY)["state_data"] == {"life": 2}


def test_requests_that_wait_behind_the_contact_know_of_it_too(
    start_worker: StartWorker, database: str, admin: Connection
) -> None:
    """Sent in one burst: the first request finds out that the database is a new one, the next ones get no old entry."""
    worker = start_worker({"DATABASE_URL": database, "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(worker, "save", **KEY, state_data={"life": 1})
    name = text.Identifier(str(conninfo_to_dict(database)["dbname"]))
    admin.execute(text.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    admin.execute(text.SQL("CREATE DATABASE {} TEMPLATE template0").format(name))
    for key in (ALONE, KEY, KEY):
        worker.send({"action": "cached_get", **key})
    assert [answer["data"]["found"] for answer in worker.read_lines(3)] == [False, False, False]


def test_the_next_process_knows_of_the_new_database(
    start_worker: StartWorker, database: str, admin: Connection
) -> None:
    """One worker has seen that the database is a new one: a process started later serves no old entry, even as its first answer."""
    settings = {"DATABASE_URL": database, "CHECKPOINT_CACHE_WAIT_MS": NO_HURRY}
    worker = start_worker(settings)
    done(worker, "save", **KEY, state_data={"life": 1})
    name = text.Identifier(str(conninfo_to_dict(database)["dbname"]))
    admin.execute(text.SQL("DROP DATABASE {} WITH (FORCE)").format(name))
    admin.execute(text.SQL("CREATE DATABASE {} TEMPLATE template0").format(name))
    done(worker, "get", **ALONE)
    assert done(start_worker(settings), "cached_get", **KEY)["found"] is False


def test_tables_made_anew_by_another_process_bring_nothing_back(
    start_worker: StartWorker, schema: str, admin: Connection, tmp_path: Path
) -> None:
    """The schema dropped and made again while the connection stays: after the next contact no old entry is served."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    for _ in range(3):
        done(worker, "save", **KEY, state_data={"life": 1})
    done(worker, "save", **ALONE, state_data={"life": 1})
    admin.execute(text.SQL("DROP SCHEMA {} CASCADE").format(text.Identifier(schema)))
    another = start_worker({"CHECKPOINT_DATA_DIR": str(tmp_path / "another")})
    done(another, "get", **KEY)
    assert done(worker, "get", **KEY)["found"] is False
    assert done(worker, "cached_get", **ALONE)["found"] is False
    done(worker, "save", **KEY, state_data={"life": 2})
    assert done(worker, "cached_get", **KEY)["state_data"] == {"life": 2}


def test_numbers_that_start_again_bring_nothing_back(start_worker: StartWorker, sql: Connection) -> None:
    """The table emptied by another program with its ids starting anew: a save is what the next cached_get gives."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    for step in ("a", "b", "s"):
        done(worker, "save", workflow_id="wf", step_id=step, state_data={"life": 1})
    sql.execute("TRUNCATE workflow_checkpoints RESTART IDENTITY")
    assert done(worker, "save", **KEY, state_data={"life": 2})["id"] == 1
    assert done(worker, "cached_get", **KEY)["state_data"] == {"life": 2}


def test_a_database_put_back_to_an_earlier_state_brings_nothing_back(
    start_worker: StartWorker, sql: Connection
) -> None:
    """The row set back to an earlier revision, as by a restored backup: a save is what the next cached_get gives."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    for number in range(1, 6):
        done(worker, "save", **KEY, state_data={"n": number})
    sql.execute(
        "UPDATE workflow_checkpoints SET revision = 2, state_data = '{\"n\": 2}', updated_at = updated_at - interval '1 hour',"
        " created_at = created_at - interval '1 hour'"
    )
    assert done(worker, "save", **KEY, state_data={"n": "new"})["revision"] == 3
    assert done(worker, "cached_get", **KEY)["state_data"] == {"n": "new"}


def test_what_postgresql_answered_replaces_an_entry_that_is_ahead(
    start_steered: StartWorker, clock: SteeredClock, sql: Connection
) -> None:
    """An expired entry with a higher revision than PostgreSQL has: the answer of PostgreSQL takes its place."""
    worker = start_steered()
    for number in range(1, 6):
        done(worker, "save", **KEY, state_data={"n": number})
    sql.execute("UPDATE workflow_checkpoints SET revision = 2, state_data = '{\"n\": 2}'")
    clock.move(300_001)
    assert done(worker, "cached_get", **KEY)["state_data"] == {"n": 2}
    again = done(worker, "cached_get", **KEY)
    assert again["state_data"] == {"n": 2}
