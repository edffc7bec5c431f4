"""What several views share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint.cli.view import Fact

if TYPE_CHECKING:
    from checkpoint import results

    Keyed = results.Saved | results.Got | results.CachedGot | results.Cached | results.Deleted | results.Approval


def key(result: Keyed) -> tuple[Fact, ...]:
    """Whose it is."""
    return (
        Fact("workflow_id", "workflow", result.workflow_id),
        Fact("step_id", "step", result.step_id),
        Fact("tenant_id", "tenant", result.tenant_id),
    )


def more(next_cursor: str | None) -> tuple[str, ...]:
    """The note that there are further pages."""
    return () if next_cursor is None else (f"there are more; the next page: --cursor {next_cursor}",)
