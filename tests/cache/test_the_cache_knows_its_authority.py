"""The cache belongs to one authority: what another database said is a miss (contract, section 3, cached_get)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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
    from tests.support.place import Place
    from tests.support.steered_clock import SteeredClock
    from tests.support.worker import Worker

KEY = {"workflow_id": "wf", "step_id": "s"}
ALONE = {"workflow_id": "wf", "step_id": "only in the first"}


class StartAt(Protocol):
    """Starts a worker of a place, its cache included, that is led to another store."""

    def __call__(self, place: Place) -> Worker:
        """A started worker."""


@pytest.fixture
def start_at(admin: Connection, database_url: str, start_offline_worker: StartWorker) -> Iterator[StartAt]:
    """Leads workers to another database of the same server."""
    with fresh_database(admin, database_url) as url:
        yield lambda place: start_offline_worker({**place.settings, "DATABASE_URL": url})


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


def test_a_rebuild_makes_the_cache_that_of_its_store(place: Place, key: dict[str, str], start_at: StartAt) -> None:
    """After a change of the store a rebuild leaves nothing of the former one, and verify is consistent."""
    for step in ("both", "only in the first"):
        done(place.worker, "save", workflow_id=key["workflow_id"], step_id=step, state_data={"of": "one"})
    two = start_at(place)
    done(two, "save", workflow_id=key["workflow_id"], step_id="both", state_data={"of": "two"})
    done(two, "rebuild")
    after = done(two, "verify")
    assert (after["consistent"], after["pg_count"], after["sqlite_count"]) == (True, 1, 1)
    row = done(two, "cached_get", workflow_id=key["workflow_id"], step_id="both")
    assert (row["source"], row["state_data"]) == ("sqlite", {"of": "two"})


def test_another_stores_entry_does_not_stand_in_the_way(place: Place, key: dict[str, str], start_at: StartAt) -> None:
    """An entry of another store is a miss for `cache` too: no TENANT_CONFLICT tells of it."""
    done(place.worker, "save", **key, tenant_id="tenant of one", state_data={})
    two = start_at(place)
    done(two, "get", **key)
    assert done(two, "cache", **key, state_data={"of": "two"})["written"] is True
    assert done(two, "cached_get", **key)["state_data"] == {"of": "two"}


def test_an_unreachable_store_gets_nothing_of_another(
    place: Place, key: dict[str, str], start_offline_worker: StartWorker
) -> None:
    """Under a DATABASE_URL whose server is away no entry of another one is served, not even stale."""
    done(place.worker, "save", **key, state_data={"of": "one"})
    two = start_offline_worker({**place.settings, "DATABASE_URL": "postgresql://127.0.0.1:9/nothing"})
    assert refused(two, "cached_get", **key)[0] == "PG_READ_ERROR"
    assert refused(two, "cached_get", **key, allow_stale=True)[0] == "PG_READ_ERROR"


def test_the_spelling_of_the_url_does_not_matter(
    place: Place, key: dict[str, str], start_offline_worker: StartWorker, database_url: str
) -> None:
    """The same hosts, port and database, written as key=value pairs or with another application name, are the same store."""
    done(place.worker, "save", **key, state_data={})
    pairs = make_conninfo("", **conninfo_to_dict(database_url), application_name="another")
    for url in (pairs, f"{database_url}{'&' if '?' in database_url else '?'}application_name=third"):
        worker = start_offline_worker({**place.settings, "DATABASE_URL": url})
        assert done(worker, "cached_get", **key)["source"] == "sqlite"


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


def test_a_database_put_back_to_an_earlier_state_brings_nothing_back(place: Place, key: dict[str, str]) -> None:
    """The row set back to an earlier revision, as by a restored backup: a save is what the next cached_get gives."""
    for number in range(1, 6):
        done(place.worker, "save", **key, state_data={"n": number})
    place.sql.execute(
        "UPDATE workflow_checkpoints SET revision = 2, state_data = '{\"n\": 2}',"
        " updated_at = updated_at - interval '1 hour', created_at = created_at - interval '1 hour' WHERE workflow_id = %s",
        (key["workflow_id"],),
    )
    assert done(place.worker, "save", **key, state_data={"n": "new"})["revision"] == 3
    assert done(place.worker, "cached_get", **key)["state_data"] == {"n": "new"}


def test_what_postgresql_answers_is_served_though_an_entry_is_ahead(
    steered: Place, clock: SteeredClock, key: dict[str, str]
) -> None:
    """An expired entry with a higher revision than PostgreSQL has is not served after PostgreSQL was asked."""
    for number in range(1, 6):
        done(steered.worker, "save", **key, state_data={"n": number})
    steered.sql.execute(
        "UPDATE workflow_checkpoints SET revision = 2, state_data = '{\"n\": 2}' WHERE workflow_id = %s",
        (key["workflow_id"],),
    )
    clock.move(300_001)
    for _ in range(2):
        assert done(steered.worker, "cached_get", **key)["state_data"] == {"n": 2}
