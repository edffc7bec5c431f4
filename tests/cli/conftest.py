"""Fixtures of these tests: one schema and one data folder for all; each test takes ids of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.command_line import CommandLine
from tests.support.place import Place, key, place, tenant, workflow

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["key", "place", "tenant", "workflow"]


class Key(NamedTuple):
    """Ids that no other test uses."""

    workflow: str
    step: str


@pytest.fixture
def ids(key: dict[str, str]) -> Key:
    """The ids as words."""
    return Key(key["workflow_id"], key["step_id"])


@pytest.fixture
def run(place: Place, tmp_path: Path) -> CommandLine:
    """Commands on the schema and the data folder of `place`, whose worker runs beside them."""
    return CommandLine(place.settings, tmp_path)


@pytest.fixture
def run_offline(tmp_path: Path) -> CommandLine:
    """Commands without a DATABASE_URL."""
    return CommandLine({"DATABASE_URL": None, "CHECKPOINT_DATA_DIR": str(tmp_path / "data")}, tmp_path)
