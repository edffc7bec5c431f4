"""One module an action, named like it, with `run(runtime, arguments) -> data` (contract, section 3)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from checkpoint.runtime import Runtime

    Run = Callable[[Runtime, dict[str, Any]], dict[str, Any]]

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
)

DEFAULT_TENANT = "default"


def load(name: str) -> Run:
    """The action's `run`. Only actions that are asked for are imported."""
    run: Run = importlib.import_module(f"checkpoint.actions.{name}").run
    return run
