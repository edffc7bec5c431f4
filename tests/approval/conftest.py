"""Fixtures of the approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def artifacts(folder: Path) -> Path:
    """The artifacts folder of the test's runners; it does not exist yet."""
    return folder / "artifacts"
