"""Every fault of tests/reported_faults.md has tests that exist."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support.descriptions import table

TESTS = Path(__file__).resolve().parents[1]
ROWS = table(TESTS / "reported_faults.md", "reported at")


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_named_tests_exist(row: list[str]) -> None:
    """Each row names at least one test, by file and function."""
    named = [name.strip() for name in row[2].split(",")]
    assert named
    for name in named:
        file, _, function = name.partition("::")
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in functions, name


def test_no_fault_stands_twice() -> None:
    """One row for each report."""
    reported = [row[0] for row in ROWS]
    assert len(set(reported)) == len(reported) >= 34
