"""Workers, PostgreSQL and cache files are killed and harmed at random, and no acknowledged save is lost (contract, section 3)."""

from __future__ import annotations

import re

from tests.chaos.faults import EVERY, SERVERS_KILLED, SERVERS_STOPPED, WORKERS_KILLED, plan
from tests.support.program import table_of


def test_a_short_storm_loses_nothing() -> None:
    """Some seconds of faults: nothing lost, nothing invented, and caches that a rebuild makes right.

    Whether there is a session or a cache file to be harmed depends on the moment; the other faults always come about.
    """
    table = table_of("chaos", "--seconds", "5")
    for kind in (WORKERS_KILLED, SERVERS_STOPPED, SERVERS_KILLED):
        assert re.search(rf"{re.escape(kind)} +[1-9]", table), table
    assert re.search(r"consistency +100\.0000 %", table), table


def test_a_seed_gives_the_same_faults_again() -> None:
    """Which fault comes when follows from the printed seed, and each kind comes at least once."""
    faults = plan(7, 6.0)
    assert faults == plan(7, 6.0)
    assert faults != plan(8, 6.0)
    assert {fault.kind for fault in faults} >= set(EVERY)


def test_five_minutes_bring_a_hundred_killed_workers_and_ten_killed_servers() -> None:
    """The faults are paced by time, so that a long storm is a hard one."""
    faults = [fault.kind for fault in plan(1, 300.0)]
    assert faults.count(WORKERS_KILLED) > 150
    assert faults.count(SERVERS_STOPPED) + faults.count(SERVERS_KILLED) > 15
