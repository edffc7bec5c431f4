"""Checkpoints of workflows: PostgreSQL is the authority, SQLite a cache that may be lost at any moment.

From Python: `from checkpoint import CheckpointManager, CheckpointError`. What the methods promise stands in
docs/contract.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from checkpoint.errors import CheckpointError, SettingsError
    from checkpoint.manager import CheckpointManager

__all__ = ["CheckpointError", "CheckpointManager", "SettingsError"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """The names above, loaded when they are asked for: the JSON-lines door starts without them."""
    if name == "CheckpointManager":
        from checkpoint.manager import CheckpointManager

        return CheckpointManager
    if name in __all__:
        from checkpoint import errors

        return getattr(errors, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
