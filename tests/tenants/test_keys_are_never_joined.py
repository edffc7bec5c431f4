"""A key is its two ids, never one text made of them, in PostgreSQL and in the cache (contract, section 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.asking import done

if TYPE_CHECKING:
    from tests.tenants.conftest import Tenants

SEPARATORS = (",", ":", "/", "|", ".", "-", "_", "#", "\\", "%2C", " ", "', '", '","', "\u2028", "::")


def test_keys_that_read_alike_are_different_checkpoints(tenants: Tenants) -> None:
    """However ids are cut where a separator stands in them: each key, and each tenant's name, gets its own state."""
    worker = tenants.everybody
    keys = [
        (tenant, workflow, step)
        for separator in SEPARATORS
        for tenant, workflow, step in (
            (f"x{separator}k", "a", f"b{separator}c"),
            ("x", f"k{separator}a{separator}b", "c"),
            ("x", f"k{separator}a", f"b{separator}c"),
            (f"x{separator}k{separator}a", "b", f"{separator}c"),
        )
    ]
    assert len({(workflow, step) for _, workflow, step in keys}) == len(keys)
    for number, (tenant, workflow, step) in enumerate(keys):
        state = {"number": number}
        done(worker, "save", tenant_id=tenant, workflow_id=workflow, step_id=step, state_data=state)
    for action, source in (("cached_get", "sqlite"), ("get", "pg")):
        for number, (tenant, workflow, step) in enumerate(keys):
            found = done(worker, action, tenant_id=tenant, workflow_id=workflow, step_id=step)
            assert (found["authority_source"], found["state_data"]) == (source, {"number": number})
    for _, workflow, step in keys:
        assert not done(worker, "cached_get", tenant_id="b", workflow_id=workflow, step_id=step)["found"]
