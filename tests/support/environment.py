"""The environment of a worker: the machine's own, without any setting of the product that happens to be there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOREIGN = ("CHECKPOINT_", "DATABASE_URL", "TEST_DATABASE_URL", "PG", "PYTHON")


def worker_environment(changes: Mapping[str, str | None]) -> dict[str, str]:
    """The environment of the tests with `changes`; None takes a variable away."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    return {name: value for name, value in {**clean, **changes}.items() if value is not None}
