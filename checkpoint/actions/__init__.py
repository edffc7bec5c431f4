"""One module an action, named like it, with `run(runtime, arguments) -> data` (contract, section 3).

An action that serves several waiting requests for the price of one also has `run_together(runtime, many, meanwhile)`:
it does what they ask of PostgreSQL, calls `meanwhile` when it has to wait, and returns a callable that does the rest
without PostgreSQL: it makes the data, or the error, of each of `many` arguments, in their order.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint.errors import CheckpointError
    from checkpoint.runtime import Runtime

    Answer = dict[str, Any] | CheckpointError
    Finish = Callable[[], list[Answer]]

    class Action(Protocol):
        """What an action module offers."""

        def run(self, runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
            """Serves one request. Raises CheckpointError."""


NAMES = (
    "save",
    "get",
    "list",
    "workflows",
    "cache",
    "cached_get",
    "rebuild",
    "verify",
    "delete",
    "prune",
    "healthcheck",
    "request_approval",
    "approve",
    "reject",
    "pending",
)


def load(name: str) -> Action:
    """The module of an action. Only actions that are asked for are imported."""
    module: Action = importlib.import_module(f"checkpoint.actions.{name}")
    return module
