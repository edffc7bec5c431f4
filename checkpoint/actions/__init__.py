"""One module an action, named like it, with `run(runtime, arguments) -> data` (contract, section 3).

An action that serves several waiting requests for the price of one also has

- `joins(arguments, taken) -> bool`: whether a request goes together with those that have put their keys into the set
  `taken`, and then puts its own there;
- `run_together(runtime, many, meanwhile) -> Together`: does what `many` arguments ask of PostgreSQL, calling
  `meanwhile` when it has to wait, and leaves what can be done without PostgreSQL to the result.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint.errors import CheckpointError
    from checkpoint.runtime import Runtime

    Answer = dict[str, Any] | CheckpointError

    class Action(Protocol):
        """What an action module offers."""

        def run(self, runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
            """Serves one request. Raises CheckpointError."""


class Together(NamedTuple):
    """`make` gives the answers, in order; None for a request to be served alone. If `complete`, there is no such."""

    make: Callable[[], list[Answer | None]]
    complete: bool


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


def takes_key(arguments: dict[str, Any], taken: set[tuple[str, str]]) -> bool:
    """Whether the key of a request was not among those taken; it is from now on."""
    key = arguments["workflow_id"], arguments["step_id"]
    free = key not in taken
    taken.add(key)
    return free


def load(name: str) -> Action:
    """The module of an action. Only actions that are asked for are imported."""
    module: Action = importlib.import_module(f"checkpoint.actions.{name}")
    return module
