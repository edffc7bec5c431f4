"""Get: what PostgreSQL holds now, scoped by tenant where one is named (contract, section 3, get)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done
from tests.support.cache_file import query

if TYPE_CHECKING:
    from tests.support.place import Place


def test_a_found_row_is_whole(place: Place, key: dict[str, str], tenant: str) -> None:
    """The row has every field that save told, and the ids."""
    saved = done(place.worker, "save", **key, tenant_id=tenant, state_data={"a": [1, None]})
    row = done(place.worker, "get", **key)
    told = {name: saved[name] for name in ("id", "created_at", "updated_at", "revision")}
    assert row == {
        **key,
        **told,
        "tenant_id": tenant,
        "state_data": {"a": [1, None]},
        "found": True,
        "authority_source": "pg",
    }


def test_nothing_there_is_a_success(place: Place, key: dict[str, str]) -> None:
    """A key without a row is found false, authority_source none, and nothing else."""
    assert done(place.worker, "get", **key) == {**key, "tenant_id": None, "found": False, "authority_source": "none"}


@pytest.mark.parametrize("action", ["get", "cached_get"])
def test_a_named_tenant_sees_only_its_own(place: Place, key: dict[str, str], tenant: str, action: str) -> None:
    """Another tenant's row is found false; without a tenant, or with an empty one, reads are not scoped."""
    done(place.worker, "save", **key, tenant_id=tenant, state_data={"mine": True})
    assert done(place.worker, action, **key, tenant_id=tenant)["found"] is True
    assert done(place.worker, action, **key, tenant_id="default")["found"] is False
    assert done(place.worker, action, **key, tenant_id=f"{tenant} ")["found"] is False
    for unscoped in ({}, {"tenant_id": ""}, {"tenant_id": None}):
        row = done(place.worker, action, **key, **unscoped)
        assert (row["found"], row["tenant_id"]) == (True, tenant)


def test_get_never_reads_the_cache(place: Place, key: dict[str, str]) -> None:
    """What another program changed in PostgreSQL is seen at once, although the cache holds something else."""
    done(place.worker, "save", **key, state_data={"n": 1})
    place.sql.execute(
        "UPDATE workflow_checkpoints SET state_data = '{\"n\": 2}' WHERE workflow_id = %s", (key["workflow_id"],)
    )
    assert done(place.worker, "get", **key)["state_data"] == {"n": 2}
    done(place.worker, "cache", **key, state_data={"n": 3})
    assert done(place.worker, "get", **key)["state_data"] == {"n": 2}
    place.sql.execute("DELETE FROM workflow_checkpoints WHERE workflow_id = %s", (key["workflow_id"],))
    assert done(place.worker, "get", **key)["found"] is False


def test_get_leaves_the_cache_alone(place: Place, key: dict[str, str]) -> None:
    """Get neither fills the cache nor clears it."""
    done(place.worker, "save", **key, state_data={"n": 1})
    query(place.folder, "DELETE FROM checkpoint_cache WHERE workflow_id = ?", key["workflow_id"])
    assert done(place.worker, "get", **key)["found"] is True
    assert done(place.worker, "cached_get", **key)["source"] == "pg"
