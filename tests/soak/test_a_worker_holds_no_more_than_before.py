"""A worker under constant load keeps its memory, files and threads, and its cache within its limit (contract, section 6)."""

from __future__ import annotations

import re

from tests.support.program import table_of


def test_a_worker_under_load_holds_no_more_than_after_its_warm_up(database_url: str) -> None:
    """Some seconds of a mixed load on a cache that is always full show no growth, and only the answers foreseen."""
    table = table_of("soak", "--seconds", "4", server=database_url)
    assert re.search(r"largest size of the cache file +[5-8]\.\d MiB", table), table
