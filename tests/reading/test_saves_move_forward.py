"""Save: an upsert that keeps what names the row and only moves forward (contract, section 3, save)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done, refused

if TYPE_CHECKING:
    from tests.support.place import Place

SECRET = "known to its tenant alone"


def test_id_and_created_at_stay_while_revision_and_updated_at_rise(place: Place, key: dict[str, str]) -> None:
    """A second save of a key is the same row: id and created_at stay, revision rises by one, updated_at moves on."""
    first = done(place.worker, "save", **key, state_data={"n": 1})
    second = done(place.worker, "save", **key, state_data={"n": 2})
    assert (first["revision"], second["revision"]) == (1, 2)
    assert (second["id"], second["created_at"]) == (first["id"], first["created_at"])
    assert first["created_at"] <= first["updated_at"] < second["updated_at"]
    assert (first["authority_source"], first["cache_written"]) == ("pg", True)


def test_saves_sent_together_move_forward_in_request_order(place: Place, key: dict[str, str]) -> None:
    """Many saves of one key in one burst get rising revisions and strictly rising times, and the last one stands."""
    for number in range(200):
        place.worker.send({"action": "save", **key, "state_data": {"n": number}})
    rows = [answer["data"] for answer in place.worker.read_lines(200)]
    assert [row["revision"] for row in rows] == list(range(1, 201))
    times = [row["updated_at"] for row in rows]
    assert times == sorted(set(times))
    assert done(place.worker, "get", **key)["state_data"] == {"n": 199}


def test_updated_at_moves_on_even_from_the_future(place: Place, key: dict[str, str]) -> None:
    """A row whose updated_at lies ahead of the clock still moves forward, by a microsecond at least."""
    done(place.worker, "save", **key, state_data={})
    ahead = "2999-01-01T00:00:00+00:00"
    place.sql.execute(
        "UPDATE workflow_checkpoints SET updated_at = %s WHERE workflow_id = %s", (ahead, key["workflow_id"])
    )
    saved = done(place.worker, "save", **key, state_data={})
    assert datetime.fromisoformat(saved["updated_at"]) > datetime.fromisoformat(ahead)
    assert done(place.worker, "get", **key)["updated_at"] == saved["updated_at"]


def test_a_new_life_of_a_key_has_a_larger_id(place: Place, key: dict[str, str]) -> None:
    """After a delete the key starts anew: revision 1, a larger id, a created_at of its own."""
    old = done(place.worker, "save", **key, state_data={"life": 1})
    done(place.worker, "delete", **key)
    new = done(place.worker, "save", **key, state_data={"life": 2})
    assert new["revision"] == 1
    assert new["id"] > old["id"]
    assert new["created_at"] > old["created_at"]
    assert done(place.worker, "cached_get", **key)["state_data"] == {"life": 2}


def test_another_tenants_save_is_refused_and_tells_nothing(place: Place, key: dict[str, str], tenant: str) -> None:
    """The key belongs to the tenant that saved it first: TENANT_CONFLICT, the row as it was, nothing of it told."""
    for _ in range(7):
        saved = done(place.worker, "save", **key, tenant_id=tenant, state_data={"secret": SECRET})
    before = done(place.worker, "get", **key)
    code, error = refused(place.worker, "save", **key, state_data={"secret": "mine"})
    assert code == "TENANT_CONFLICT"
    for told in (tenant, SECRET, str(saved["id"]), saved["updated_at"][:10], "revision", "7"):
        assert told not in error
    assert done(place.worker, "get", **key) == before
    assert done(place.worker, "cached_get", **key)["state_data"] == {"secret": SECRET}


@pytest.mark.parametrize("expected", [0, 1, 3, 4])
def test_another_tenants_expected_revision_is_a_tenant_conflict(
    place: Place, key: dict[str, str], tenant: str, expected: int
) -> None:
    """Whatever revision is expected, right or wrong, another tenant's row is TENANT_CONFLICT, without its revision."""
    for _ in range(3):
        done(place.worker, "save", **key, tenant_id=tenant, state_data={})
    code, error = refused(place.worker, "save", **key, state_data={"x": 1}, expected_revision=expected)
    assert code == "TENANT_CONFLICT"
    assert not any(letter.isdigit() for letter in error)
    row = done(place.worker, "get", **key)
    assert (row["state_data"], row["revision"], row["tenant_id"]) == ({}, 3, tenant)


def test_expected_zero_creates_once(place: Place, key: dict[str, str]) -> None:
    """expected_revision 0 means: it must not exist. The second time it is REVISION_CONFLICT naming the revision."""
    assert done(place.worker, "save", **key, state_data={"n": 1}, expected_revision=0)["revision"] == 1
    code, error = refused(place.worker, "save", **key, state_data={"n": 2}, expected_revision=0)
    assert (code, "1" in error) == ("REVISION_CONFLICT", True)
    assert done(place.worker, "get", **key)["state_data"] == {"n": 1}


def test_an_expected_revision_is_compared_and_set(place: Place, key: dict[str, str]) -> None:
    """The expected revision writes the next one; a passed one, or one that never was, changes nothing."""
    done(place.worker, "save", **key, state_data={"n": 1})
    second = done(place.worker, "save", **key, state_data={"n": 2}, expected_revision=1)
    assert second["revision"] == 2
    for wrong in (1, 3, 2**63 - 1):
        code, error = refused(place.worker, "save", **key, state_data={"n": 3}, expected_revision=wrong)
        assert code == "REVISION_CONFLICT"
        assert "is 2" in error or "revision 2" in error
    row = done(place.worker, "get", **key)
    assert (row["state_data"], row["revision"], row["updated_at"]) == ({"n": 2}, 2, second["updated_at"])
    assert done(place.worker, "cached_get", **key)["state_data"] == {"n": 2}


def test_an_expected_revision_never_inserts(place: Place, key: dict[str, str]) -> None:
    """Where there is no row, an expected revision above 0 is REVISION_CONFLICT, and there is still none."""
    assert refused(place.worker, "save", **key, state_data={}, expected_revision=1)[0] == "REVISION_CONFLICT"
    assert done(place.worker, "get", **key)["found"] is False


def test_a_refused_save_leaves_the_cache_as_it_was(place: Place, key: dict[str, str]) -> None:
    """After a conflict the cache still serves what stands, as a hit."""
    done(place.worker, "save", **key, state_data={"n": 1})
    refused(place.worker, "save", **key, state_data={"n": 2}, expected_revision=9)
    hit = done(place.worker, "cached_get", **key)
    assert (hit["source"], hit["state_data"]) == ("sqlite", {"n": 1})
