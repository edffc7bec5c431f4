"""The commands: what each is called, which action it is, what it takes, and what is shown of its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from checkpoint import results
from checkpoint.cli import options
from checkpoint.cli.views import approvals, checkpoints, upkeep

if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Callable

    from checkpoint.cli.view import View


class Command(NamedTuple):
    """One command. `summary` has no full stop, `examples` are whole lines."""

    name: str
    action: str
    summary: str
    examples: tuple[str, ...]
    add_arguments: Callable[[ArgumentParser], None]
    kind: type[results.Result]
    view: Callable[[Any], View]


COMMANDS: tuple[Command, ...] = (
    Command(
        "save",
        "save",
        "keep the state of a step",
        (
            "checkpoint save wf_001 step_1 '{\"progress\": 30}'",
            "checkpoint save wf_001 step_1 @state.json --expect 3",
            "produce-state | checkpoint save wf_001 step_1 -",
        ),
        options.save,
        results.Saved,
        checkpoints.saved,
    ),
    Command(
        "get",
        "get",
        "show a checkpoint as PostgreSQL has it",
        ("checkpoint get wf_001 step_1", "checkpoint get wf_001 step_1 --raw > state.json"),
        options.get,
        results.Got,
        checkpoints.got,
    ),
    Command(
        "list",
        "list",
        "show the steps of a workflow, the last saved first",
        ("checkpoint list wf_001", "checkpoint list wf_001 --state --limit 10"),
        options.list_,
        results.CheckpointPage,
        checkpoints.checkpoints,
    ),
    Command(
        "workflows",
        "workflows",
        "show which workflows there are",
        ("checkpoint workflows", "checkpoint workflows --tenant acme"),
        options.workflows,
        results.WorkflowPage,
        checkpoints.workflows,
    ),
    Command(
        "cached-get",
        "cached_get",
        "show a checkpoint from the cache, else from PostgreSQL",
        ("checkpoint cached-get wf_001 step_1", "checkpoint cached-get wf_001 step_1 --allow-stale"),
        options.cached_get,
        results.CachedGot,
        checkpoints.cached_got,
    ),
    Command(
        "cache",
        "cache",
        "put a state into the cache alone, where it may be lost",
        ("checkpoint cache wf_001 draft '{\"words\": 12}'",),
        options.cache,
        results.Cached,
        checkpoints.cached,
    ),
    Command(
        "rebuild",
        "rebuild",
        "fill the cache anew from PostgreSQL",
        ("checkpoint rebuild", "checkpoint rebuild --tenant acme --workflow wf_001"),
        options.rebuild,
        results.Rebuilt,
        upkeep.rebuilt,
    ),
    Command(
        "verify",
        "verify",
        "compare the cache with PostgreSQL, and write a report",
        ("checkpoint verify", "checkpoint verify --workflow wf_001"),
        options.verify,
        results.Verified,
        upkeep.verified,
    ),
    Command(
        "delete",
        "delete",
        "delete a step, or all steps of a workflow",
        ("checkpoint delete wf_001 step_1", "checkpoint delete wf_001 --all-steps --yes"),
        options.delete,
        results.Deleted,
        upkeep.deleted,
    ),
    Command(
        "prune",
        "prune",
        "delete what was not saved for a long time",
        ("checkpoint prune --older-than 30d --dry-run", "checkpoint prune --older-than 12w --all-tenants --yes"),
        options.prune,
        results.Pruned,
        upkeep.pruned,
    ),
    Command(
        "health",
        "healthcheck",
        "tell whether PostgreSQL and the cache serve",
        ("checkpoint health", "checkpoint health --json"),
        options.health,
        results.Health,
        upkeep.health,
    ),
    Command(
        "request-approval",
        "request_approval",
        "ask a person, or tell what came of it",
        (
            "checkpoint request-approval wf_001 report --input @in.json --report @out.md",
            "checkpoint request-approval wf_001 report --input @in.json --renew",
        ),
        options.request_approval,
        results.Approval,
        approvals.approval,
    ),
    Command(
        "pending",
        "pending",
        "show what waits for a person, and its reports",
        ("checkpoint pending", "checkpoint pending --tenant acme"),
        options.pending,
        results.PendingPage,
        approvals.pending,
    ),
    Command(
        "approve",
        "approve",
        "say yes: the report is written",
        ("checkpoint approve wf_001 report TOKEN --by ann --input @in.json",),
        options.decide,
        results.Approval,
        approvals.approval,
    ),
    Command(
        "reject",
        "reject",
        "say no: nothing is written",
        ("checkpoint reject wf_001 report TOKEN --by ann --reason 'wrong sums'",),
        options.decide,
        results.Approval,
        approvals.approval,
    ),
)
