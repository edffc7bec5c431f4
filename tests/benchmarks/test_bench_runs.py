"""`python -m benchmarks`: a trial run takes every figure and tells it, as a table and as JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks import langgraph_savers
from tests.support.database import Connection, fresh_database
from tests.support.environment import worker_environment
from tests.support.program import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROUPS = (
    "the limits",
    "one by one, 1 KB",
    "one by one, 100 KB",
    "waiting requests, 1 KB",
    "a process for one request",
    "what the cache adds to a save",
    "memory of the worker",
    "rebuild",
    "verify",
)
PATIENCE = 100

pytestmark = pytest.mark.skipif(
    not os.environ.get("TEST_BENCH"), reason="a trial of every figure takes half a minute; TEST_BENCH=1 asks for it"
)


@pytest.fixture(scope="module")
def own_database(admin: Connection, database_url: str) -> Iterator[str]:
    """A database for the run: it makes the tables of all contestants."""
    with fresh_database(admin, database_url) as url:
        yield url


@pytest.fixture(scope="module")
def folder(own_database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a trial: one round, and very little of everything."""
    results = tmp_path_factory.mktemp("results")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "benchmarks",
            "--rounds=1",
            "--scale=0.01",
            f"--results={results}",
            f"--only={own_database}",
        ],
        cwd=REPOSITORY,
        env=worker_environment({}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (results / "stdout").write_text(done.stdout, encoding="utf-8")
    return results


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    """What stands in the JSON file."""
    found: dict[str, Any] = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return found


def test_every_figure_is_taken(told: dict[str, Any]) -> None:
    """Each group has rows, each row a positive figure, and where it has a yardstick that one's, and the ratio of both."""
    rows = told["rows"]
    assert {group for group in GROUPS if any(row["group"].startswith(group) for row in rows)} >= set(
        GROUPS
    ) - _only_linux()
    for row in rows:
        assert row["ours"] > 0, row
        assert (row["theirs"] is None) == (row["yardstick"] == ""), row
        assert (row["ratio"] is None) == (row["theirs"] is None), row
        assert (row["reached"] is None) == (row["aim"] is None), row


def test_what_it_was_taken_on_is_named(told: dict[str, Any], folder: Path) -> None:
    """Machine, versions, seed and the servers; none of their addresses, which may hold a password."""
    assert told["machine"]["cores"] >= 1
    assert {"Python", "SQLite", "psycopg"} <= told["versions"].keys()
    assert (told["rounds"], told["seed"], told["scale"]) == (1, 1, 0.01)
    assert [server["version"] for server in told["servers"]]
    for name in ("results.json", "results.md"):
        assert "postgresql://" not in (folder / name).read_text(encoding="utf-8")


def test_the_table_that_is_printed_is_the_one_that_is_kept(told: dict[str, Any], folder: Path) -> None:
    """The Markdown holds a line for each row of the JSON, and stdout holds the same."""
    table = (folder / "results.md").read_text(encoding="utf-8")
    assert table == (folder / "stdout").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| .* \| .* \| .* \| .* \| .* \| .* \| .* \|$", table, re.MULTILINE)) == (
        len(told["rows"]) + 2 * len({row["group"] for row in told["rows"]})
    )
    for request in ("save", "cached_get hit"):
        assert f"Imports of a process for one {request}" in table
        assert told["imports"][request]


def test_rows_that_need_a_package_that_is_not_there_are_left_out_and_that_is_said(told: dict[str, Any]) -> None:
    """LangGraph comes with the extra `bench` alone."""
    rows = [row for row in told["rows"] if "LangGraph" in row["yardstick"]]
    assert bool(rows) == langgraph_savers.installed()
    assert (langgraph_savers.NOT_INSTALLED in told["notes"]) != langgraph_savers.installed()


def _only_linux() -> set[str]:
    return set() if sys.platform == "linux" else {"memory of the worker"}
