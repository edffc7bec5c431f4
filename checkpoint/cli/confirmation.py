"""A person is asked before something is destroyed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from checkpoint.cli.view import visible
from checkpoint.errors import CheckpointError
from checkpoint.record import DEFAULT_TENANT
from checkpoint.results import Pruned

if TYPE_CHECKING:
    from checkpoint.cli.parser import Words
    from checkpoint.cli.session import Answer, Session


class NotMeant(Exception):
    """It is not to be done: somebody said no."""


class NobodyToAsk(Exception):
    """There is no terminal to ask at."""


def ask_before(session: Session, words: Words) -> Answer[Any] | None:
    """Asks where the command would destroy.

    The answer that serves for its own where there is nothing to destroy, or where the words are wrong. Raises
    NotMeant, NobodyToAsk.
    """
    if words.command.action not in ("delete", "prune") or words.yes or "dry_run" in words.fields:
        return None
    refused = session.refusal(words.command.action, words.fields)
    if refused is not None:
        return refused
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NobodyToAsk
    if words.command.action == "prune":
        answer = session.ask("prune", {**words.fields, "dry_run": True}, Pruned, None)
        if isinstance(answer.result, CheckpointError) or answer.result.deleted_count == 0:
            return answer
        _ask(_many(answer.result))
    else:
        step, workflow = words.fields.get("step_id"), words.fields["workflow_id"]
        tenant = words.fields.get("tenant_id") or session.settings.tenant or DEFAULT_TENANT
        _ask(f"{'all steps' if step is None else step} of {workflow} (tenant {tenant})")
    return None


def _many(result: Pruned) -> str:
    tenant = "all tenants" if result.tenant_id is None else f"tenant {result.tenant_id}"
    return f"{result.deleted_count} checkpoint{'' if result.deleted_count == 1 else 's'} ({tenant})"


def _ask(what: str) -> None:
    """Anything but y or yes is no."""
    sys.stderr.write(f"Delete {visible(what)} for good? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotMeant
