"""Verify: content and tenant, key by key, of both sides (contract, section 3, verify)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.asking import done, refused
from tests.support.cache_file import query, write_locked
from tests.support.place import NO_HURRY
from tests.support.process import peak_memory

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.place import Place
    from tests.support.steered_clock import SteeredClock

NONE: dict[str, Any] = {"cache_only": [], "pg_only": [], "data_mismatch": []}
SQL_STATE = "UPDATE workflow_checkpoints SET {} WHERE workflow_id = %s AND step_id = %s"


def difference(place: Place, workflow: str) -> dict[str, Any]:
    """The mismatches of the one workflow; the counts have to be those of the lists."""
    answer = done(place.worker, "verify", workflow_id=workflow)
    assert answer["mismatch_counts"] == {kind: len(items) for kind, items in answer["mismatches"].items()}
    assert answer["consistent"] is (answer["mismatches"] == NONE)
    mismatches: dict[str, Any] = answer["mismatches"]
    return mismatches


def mismatch(key: dict[str, str], reason: str) -> dict[str, Any]:
    """The answer where one key is there on both sides and differs."""
    return {**NONE, "data_mismatch": [{**key, "reason": reason}]}


def test_after_a_save_both_sides_agree(place: Place, workflow: str) -> None:
    """Counts of both sides, consistent, empty lists, an absolute report path, the time of the check."""
    for step in "abc":
        done(place.worker, "save", workflow_id=workflow, step_id=step, state_data={"of": step})
    answer = done(place.worker, "verify", workflow_id=workflow)
    assert (answer["consistent"], answer["pg_count"], answer["sqlite_count"]) == (True, 3, 3)
    assert (answer["mismatches"], answer["workflow_id"], answer["tenant_id"]) == (NONE, workflow, None)
    assert answer["report_path"].startswith(f"{place.folder}/reports/")
    assert answer["elapsed_sec"] >= 0
    assert answer["checked_at"].endswith("+00:00")


def test_behind_is_an_older_revision_in_the_cache(place: Place, key: dict[str, str]) -> None:
    """Another program saved: the cache has an older revision."""
    done(place.worker, "save", **key, state_data={"n": 1})
    place.sql.execute(SQL_STATE.format("state_data = '{\"n\": 2}', revision = revision + 1"), tuple(key.values()))
    assert difference(place, key["workflow_id"]) == mismatch(key, "behind")


def test_behind_is_an_earlier_life_too(place: Place, key: dict[str, str]) -> None:
    """Deleted and inserted anew by another program: a larger id is newer, although its revision is lower."""
    for number in range(3):
        done(place.worker, "save", **key, state_data={"n": number})
    place.sql.execute("DELETE FROM workflow_checkpoints WHERE workflow_id = %s", (key["workflow_id"],))
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data) VALUES (%s, %s, '{}')", tuple(key.values())
    )
    assert difference(place, key["workflow_id"]) == mismatch(key, "behind")


def test_ahead_is_a_newer_revision_in_the_cache(place: Place, key: dict[str, str]) -> None:
    """The database was put back: the cache has a revision that it has not."""
    for number in range(3):
        done(place.worker, "save", **key, state_data={"n": number})
    place.sql.execute(SQL_STATE.format("state_data = '{}', revision = 1"), tuple(key.values()))
    assert difference(place, key["workflow_id"]) == mismatch(key, "ahead")


def test_no_revision_is_an_entry_that_was_never_confirmed(place: Place, key: dict[str, str]) -> None:
    """Put there by `cache` over a saved state."""
    done(place.worker, "save", **key, state_data={"n": 1})
    done(place.worker, "cache", **key, state_data={"n": 2})
    assert difference(place, key["workflow_id"]) == mismatch(key, "no_revision")


def test_damaged_is_other_content_of_the_same_revision(place: Place, key: dict[str, str]) -> None:
    """A byte changed in the file, or a row changed in PostgreSQL without a new revision."""
    done(place.worker, "save", **key, state_data={"n": "original"})
    query(
        place.folder,
        "UPDATE checkpoint_cache SET state_data = CAST(replace(state_data, 'orig', 'Orig') AS BLOB) WHERE workflow_id = ?",
        key["workflow_id"],
    )
    assert difference(place, key["workflow_id"]) == mismatch(key, "damaged")
    done(place.worker, "rebuild", workflow_id=key["workflow_id"])
    assert difference(place, key["workflow_id"]) == NONE
    place.sql.execute(SQL_STATE.format("state_data = '{}'"), tuple(key.values()))
    assert difference(place, key["workflow_id"]) == mismatch(key, "damaged")


def test_a_changed_field_of_an_entry_is_damage_though_its_state_is_right(place: Place, key: dict[str, str]) -> None:
    """An entry whose checksum does not hold is reported, not trusted for its state alone."""
    done(place.worker, "save", **key, state_data={"n": 1})
    query(
        place.folder, "UPDATE checkpoint_cache SET cached_at = cached_at + 1 WHERE workflow_id = ?", key["workflow_id"]
    )
    assert difference(place, key["workflow_id"]) == mismatch(key, "damaged")


def test_another_tenant_is_a_difference_though_the_state_is_the_same(place: Place, key: dict[str, str]) -> None:
    """The tenant is compared, not only the content: a row that changed its owner is told."""
    done(place.worker, "save", **key, state_data={"n": 1})
    place.sql.execute(SQL_STATE.format("tenant_id = 'another'"), tuple(key.values()))
    found = difference(place, key["workflow_id"])
    assert [item["step_id"] for item in found["data_mismatch"]] == [key["step_id"]]


def test_white_space_and_spelling_are_content(place: Place, key: dict[str, str]) -> None:
    """The text is compared: 1.0 for 1 in PostgreSQL is a difference, though the value is the same."""
    done(place.worker, "save", **key, state_data={"n": 1})
    place.sql.execute(SQL_STATE.format("state_data = '{\"n\": 1.0}'"), tuple(key.values()))
    assert difference(place, key["workflow_id"]) == mismatch(key, "damaged")


def test_each_side_alone(place: Place, workflow: str) -> None:
    """What only PostgreSQL has, and what only the cache has."""
    done(place.worker, "save", workflow_id=workflow, step_id="both", state_data={})
    done(place.worker, "save", workflow_id=workflow, step_id="only cached", state_data={})
    done(place.worker, "save", workflow_id=workflow, step_id="only kept", state_data={})
    place.sql.execute(
        "DELETE FROM workflow_checkpoints WHERE workflow_id = %s AND step_id = 'only cached'", (workflow,)
    )
    query(place.folder, "DELETE FROM checkpoint_cache WHERE workflow_id = ? AND step_id = 'only kept'", workflow)
    assert difference(place, workflow) == {
        "cache_only": [{"workflow_id": workflow, "step_id": "only cached"}],
        "pg_only": [{"workflow_id": workflow, "step_id": "only kept"}],
        "data_mismatch": [],
    }


def test_a_verify_keeps_to_its_tenant(place: Place, workflow: str, tenant: str) -> None:
    """With a tenant only its rows and entries count; an empty tenant or workflow means all."""
    done(place.worker, "save", workflow_id=workflow, step_id="a", tenant_id=tenant, state_data={})
    done(place.worker, "save", workflow_id=workflow, step_id="b", state_data={})
    done(place.worker, "cache", workflow_id=workflow, step_id="c", state_data={})
    answer = done(place.worker, "verify", tenant_id=tenant)
    assert (answer["consistent"], answer["pg_count"], answer["sqlite_count"]) == (True, 1, 1)
    assert (answer["workflow_id"], answer["tenant_id"]) == (None, tenant)
    answer = done(place.worker, "verify", workflow_id=workflow, tenant_id="")
    assert (answer["consistent"], answer["pg_count"], answer["sqlite_count"]) == (False, 2, 3)
    assert done(place.worker, "verify", workflow_id="", tenant_id="")["pg_count"] > 2


def test_expired_entries_count(steered: Place, clock: SteeredClock, key: dict[str, str]) -> None:
    """Entries that are too old to be served are compared all the same."""
    done(steered.worker, "save", **key, state_data={})
    clock.move(10_000_000)
    answer = done(steered.worker, "verify", workflow_id=key["workflow_id"])
    assert (answer["consistent"], answer["sqlite_count"]) == (True, 1)


def test_verify_changes_nothing(place: Place, workflow: str) -> None:
    """What differs still differs the second time; nothing is repaired or removed."""
    done(place.worker, "cache", workflow_id=workflow, step_id="a", state_data={})
    assert difference(place, workflow) == difference(place, workflow) != NONE


def test_keys_of_every_kind_are_matched(place: Place, workflow: str) -> None:
    """Both sides stream in one order, whatever the ids are made of: neighbours by bytes, by code points, by case."""
    steps = [
        "a",
        "B",
        "b",
        "a ",
        "a\u00a0",
        "é",
        "e\u0301",
        "z",
        "\uffff",
        "\U0001f600",
        "\U0010ffff",
        "ﬀ",
        "10",
        "9",
        "-",
        "~",
    ]
    steps += [f"{step}{step}" for step in steps]
    for step in steps:
        done(place.worker, "save", workflow_id=workflow, step_id=step, state_data={"of": step})
    answer = done(place.worker, "verify", workflow_id=workflow)
    assert (answer["consistent"], answer["pg_count"], answer["sqlite_count"]) == (True, len(steps), len(steps))


@pytest.fixture
def many(place: Place, workflow: str) -> dict[str, list[dict[str, str]]]:
    """1500 differences of each kind in one workflow, with steps that agree between them."""
    count = 1500
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)"
        " SELECT %s, prefix || to_char(n, 'FM0000'), json_build_object('n', n)"
        " FROM generate_series(1, %s) AS n, (VALUES ('agree '), ('cached '), ('differ ')) AS kinds (prefix)",
        (workflow, count),
    )
    done(place.worker, "rebuild", workflow_id=workflow)
    place.sql.execute(
        "DELETE FROM workflow_checkpoints WHERE workflow_id = %s AND step_id LIKE 'cached %%'", (workflow,)
    )
    place.sql.execute(
        "UPDATE workflow_checkpoints SET revision = 2, state_data = '{}' WHERE workflow_id = %s AND step_id LIKE 'differ %%'",
        (workflow,),
    )
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)"
        " SELECT %s, 'kept ' || to_char(n, 'FM0000'), '{}' FROM generate_series(1, %s) AS n",
        (workflow, count),
    )

    def keys(prefix: str) -> list[dict[str, str]]:
        return [{"workflow_id": workflow, "step_id": f"{prefix} {number:04}"} for number in range(1, count + 1)]

    behind = [{**key, "reason": "behind"} for key in keys("differ")]
    return {"cache_only": keys("cached"), "pg_only": keys("kept"), "data_mismatch": behind}


def test_lists_end_at_1000_and_the_report_holds_all(
    place: Place, workflow: str, many: dict[str, list[dict[str, str]]]
) -> None:
    """The answer lists the first 1000 of each kind in key order and counts all; the report has every one, in order."""
    answer = done(place.worker, "verify", workflow_id=workflow)
    assert (answer["consistent"], answer["pg_count"], answer["sqlite_count"]) == (False, 4500, 4500)
    assert answer["mismatch_counts"] == dict.fromkeys(many, 1500)
    assert answer["mismatches"] == {kind: items[:1000] for kind, items in many.items()}
    with open(answer["report_path"], encoding="utf-8") as file:
        report = json.load(file)
    assert report["mismatches"] == many
    for name in ("consistent", "pg_count", "sqlite_count", "mismatch_counts", "checked_at", "workflow_id", "tenant_id"):
        assert report[name] == answer[name], name


def test_a_locked_cache_can_be_verified(place: Place, key: dict[str, str]) -> None:
    """Another process holds the write lock: verify only reads, and answers."""
    done(place.worker, "save", **key, state_data={})
    with write_locked(place.folder):
        assert done(place.worker, "verify", workflow_id=key["workflow_id"])["consistent"] is True


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:9/nothing", None], ids=["away", "not configured"])
def test_a_failing_authority_is_a_failure(start_worker: StartWorker, url: str | None) -> None:
    """PostgreSQL cannot be read: never an answer about one side alone."""
    code, _ = refused(start_worker({"DATABASE_URL": url}), "verify")
    assert code == ("VERIFY_FAILED" if url else "DB_NOT_CONFIGURED")


def test_a_large_cache_is_compared_in_little_memory(start_worker: StartWorker, sql: Connection) -> None:
    """Forty megabytes of states on both sides: the worker's memory does not follow."""
    worker = start_worker({"CHECKPOINT_CACHE_WAIT_MS": NO_HURRY})
    done(worker, "save", workflow_id="wf", step_id="s", state_data={})
    done(worker, "verify")
    sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)"
        " SELECT 'wf', 'step ' || n, ('{\"x\":\"' || repeat('x', 1000000) || '\"}')::json FROM generate_series(1, 40) AS n"
    )
    done(worker, "rebuild")
    before = peak_memory(worker.pid)
    assert done(worker, "verify")["consistent"] is True
    assert peak_memory(worker.pid) - before < 10_000_000
