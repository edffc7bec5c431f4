"""Where it is not known what PostgreSQL holds, the cache does not pretend to know (contract, section 3, save)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.asking import done, refused
from tests.support.cache_file import write_locked
from tests.support.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import StartWorker

KEY = {"workflow_id": "wf", "step_id": "s"}
ELSEWHERE = {"workflow_id": "elsewhere", "step_id": "s"}
CHANGES: dict[str, dict[str, Any]] = {
    "save": {"action": "save", **KEY, "state_data": {"n": 2}},
    "delete one": {"action": "delete", **KEY},
    "delete all": {"action": "delete", "workflow_id": "wf", "all_steps": True},
}


@pytest.fixture
def proxy(database_url: str) -> Iterator[Proxy]:
    """A network that can lose replies."""
    opened = Proxy(database_url)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("locked", [False, True], ids=["", "cache locked"])
def test_what_was_cached_is_not_served_any_more(
    start_worker: StartWorker, proxy: Proxy, folder: Path, name: str, locked: bool
) -> None:
    """The reply to a change is lost and PostgreSQL is away: the old entry is no answer, not even a stale one."""
    worker = start_worker({"DATABASE_URL": proxy.url})
    for key in (KEY, ELSEWHERE):
        done(worker, "save", **key, state_data={"n": 1})
    with write_locked(folder) if locked else nullcontext():
        proxy.lose_replies()
        answer = worker.request(CHANGES[name])
        assert answer["code"] == "PG_WRITE_UNKNOWN"
        for stale in (False, True):
            assert refused(worker, "cached_get", **KEY, allow_stale=stale)[0] == "PG_READ_ERROR"
    assert refused(worker, "cached_get", **KEY, allow_stale=True)[0] == "PG_READ_ERROR"
    if not locked:
        assert done(worker, "cached_get", **ELSEWHERE)["source"] == "sqlite"
