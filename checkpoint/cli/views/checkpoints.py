"""What is shown of checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint.cli.view import BAD, GOOD, QUIET, Blocks, Column, Fact, Facts, State, Table, Toned, View
from checkpoint.cli.views.shared import key, more

if TYPE_CHECKING:
    from checkpoint import results

EMPTY = "no checkpoints yet; the first one: checkpoint save WORKFLOW STEP '{\"progress\": 30}'"


def saved(result: results.Saved) -> View:
    """Of `save`."""
    written = result.cache_written
    cache = Toned(written, GOOD, "written") if written else Toned(written, QUIET, "not written yet, which is no error")
    return View((Facts((*key(result), *_life(result), Fact("cache_written", "cache", cache))),))


def cached(result: results.Cached) -> View:
    """Of `cache`."""
    if result.written:
        written = Toned(value=True, tone=GOOD, word="written, and may be lost at any time")
    else:
        written = Toned(value=False, tone=BAD, word="not written")
    return View((Facts((*key(result), Fact("written", "cache", written), Fact("cached_at", "at", result.cached_at))),))


def got(result: results.Got) -> View:
    """Of `get`."""
    if not result.found:
        return _not_found(result)
    return View((Facts((*key(result), *_life(result))), State(result.state_text or "{}")))


def cached_got(result: results.CachedGot) -> View:
    """Of `cached_get`."""
    if not result.found:
        return _not_found(result)
    word = {"sqlite": "the cache", "pg": "PostgreSQL"}.get(result.source)
    source = Toned(result.source, BAD, f"{word}, expired") if result.stale else Toned(result.source, None, word)
    facts = (
        *key(result),
        *_life(result),
        Fact("source", "read from", source),
        Fact("cached_at", "confirmed", result.cached_at),
    )
    return View((Facts(facts), State(result.state_text or "{}")))


def checkpoints(result: results.CheckpointPage) -> View:
    """Of `list`."""
    with_state = any(row.state_text is not None for row in result.checkpoints)
    columns = [
        Column("step_id", "step"),
        Column("revision", "revision"),
        Column("updated_at", "saved"),
        Column("tenant_id", "tenant"),
    ]
    if with_state:
        columns.append(Column("state_data", "state"))
    rows = tuple(
        (row.step_id, row.revision, row.updated_at, row.tenant_id, *((row.state_text,) if with_state else ()))
        for row in result.checkpoints
    )
    if not rows:
        return View((), (f"no checkpoints of workflow {result.workflow_id}; checkpoint workflows lists what there is",))
    table = Table(tuple(columns), rows)
    return View((Blocks(table, states=True) if with_state else table,), more(result.next_cursor))


def workflows(result: results.WorkflowPage) -> View:
    """Of `workflows`."""
    columns = (
        Column("workflow_id", "workflow"),
        Column("checkpoint_count", "checkpoints"),
        Column("last_updated_at", "last saved"),
        Column("tenant_id", "tenant"),
    )
    rows = tuple(
        (row.workflow_id, row.checkpoint_count, row.last_updated_at, row.tenant_id) for row in result.workflows
    )
    if not rows:
        return View((), (EMPTY if result.tenant_id is None else f"no checkpoints of tenant {result.tenant_id} yet",))
    return View((Table(columns, rows),), more(result.next_cursor))


def _not_found(result: results.Got | results.CachedGot) -> View:
    tenant = "" if result.tenant_id is None else f" of tenant {result.tenant_id}"
    return View((), (f"no checkpoint {result.workflow_id} / {result.step_id}{tenant}",))


def _life(result: results.Saved | results.Got | results.CachedGot) -> tuple[Fact, ...]:
    return (
        Fact("revision", "revision", result.revision),
        Fact("id", "id", result.id),
        Fact("created_at", "first saved", result.created_at),
        Fact("updated_at", "saved", result.updated_at),
    )
