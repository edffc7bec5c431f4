"""What is shown of the care for cache and table."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from checkpoint.cli.view import BAD, GOOD, Column, Fact, Facts, Table, Toned, View
from checkpoint.cli.views.shared import key

if TYPE_CHECKING:
    from checkpoint import results

SHOWN_DIFFERENCES = 20
KIB = 1024
NOT_CONFIGURED = Toned(value=False, tone=BAD, word="not configured")
REPAIR = "what mends the cache is checkpoint rebuild"


def rebuilt(result: results.Rebuilt) -> View:
    """Of `rebuild`."""
    facts = (
        Fact("tenant_id", "tenant", result.tenant_id),
        Fact("workflow_id", "workflow", result.workflow_id),
        Fact("pg_read_count", "read", result.pg_read_count),
        Fact("deleted_before", "removed", result.deleted_before),
        Fact("rebuilt_count", "written", result.rebuilt_count),
        Fact("elapsed_sec", "seconds", result.elapsed_sec),
    )
    left_out = "some were left out: CHECKPOINT_REBUILD_LIMIT or the size of the cache is reached"
    return View((Facts(facts),), (left_out,) if result.truncated else ())


def verified(result: results.Verified) -> View:
    """Of `verify`: the counts, the page about it, and the first differences."""
    counts = result.mismatch_counts
    total = counts.cache_only + counts.pg_only + counts.data_mismatch
    page = _page(result.report_path)
    if result.consistent:
        verdict = Toned(value=True, tone=GOOD, word="consistent")
    else:
        verdict = Toned(value=False, tone=BAD, word=f"{total} difference{'' if total == 1 else 's'}")
    facts = (
        Fact("consistent", "verdict", verdict),
        Fact("workflow_id", "workflow", result.workflow_id),
        Fact("tenant_id", "tenant", result.tenant_id),
        Fact("pg_count", "PostgreSQL", result.pg_count),
        Fact("sqlite_count", "cache", result.sqlite_count),
        Fact("cache_only", "only in cache", counts.cache_only),
        Fact("pg_only", "only in PG", counts.pg_only),
        Fact("data_mismatch", "not the same", counts.data_mismatch),
        Fact("page", "page", page),
        Fact("report_path", "as JSON", result.report_path),
    )
    differences = (
        *((item.reason, item.workflow_id, item.step_id) for item in result.mismatches.data_mismatch),
        *(("cache_only", item.workflow_id, item.step_id) for item in result.mismatches.cache_only),
        *(("pg_only", item.workflow_id, item.step_id) for item in result.mismatches.pg_only),
    )
    columns = (Column("difference", "difference"), Column("workflow_id", "workflow"), Column("step_id", "step"))
    table = (Table(columns, differences, SHOWN_DIFFERENCES),) if differences else ()
    notes: tuple[str, ...] = () if result.report_error is None else (result.report_error,)
    if not result.consistent:
        notes += (REPAIR if page is None else f"{REPAIR}; read first what the page says",)
    return View((Facts(facts), *table), notes)


def deleted(result: results.Deleted) -> View:
    """Of `delete`."""
    return View((Facts((*key(result), Fact("deleted_count", "deleted", result.deleted_count))),))


def pruned(result: results.Pruned) -> View:
    """Of `prune`."""
    label = "would delete" if result.dry_run else "deleted"
    facts = (
        Fact("workflow_id", "workflow", result.workflow_id),
        Fact("tenant_id", "tenant", result.tenant_id),
        Fact("deleted_count", label, result.deleted_count),
    )
    return View((Facts(facts),))


def health(result: results.Health) -> View:
    """Of `healthcheck`, but for the counters: this process has just begun."""
    pg, cache = result.pg, result.sqlite
    tone = GOOD if result.status == "ok" else BAD
    size = None if cache.size_bytes is None else Toned(cache.size_bytes, None, f"{cache.size_bytes / KIB:,.0f} KiB")
    facts = (
        Fact("status", "status", Toned(result.status, tone)),
        Fact("version", "version", result.version),
        Fact("pg.ok", "PostgreSQL", _ok(pg.ok) if pg.configured else NOT_CONFIGURED),
        Fact("pg.address", "  at", pg.address),
        Fact("pg.server_version", "  version", pg.server_version),
        Fact("pg.latency_ms", "  latency ms", pg.latency_ms),
        Fact("pg.writable", "  writable", _wanted(pg.writable)),
        Fact("pg.durable", "  durable", _wanted(pg.durable)),
        Fact("pg.row_security", "  row security", pg.row_security),
        Fact("pg.error", "  error", pg.error),
        Fact("sqlite.ok", "cache", _ok(cache.ok)),
        Fact("sqlite.path", "  file", cache.path),
        Fact("sqlite.entries", "  entries", cache.entries),
        Fact("sqlite.size_bytes", "  size", size),
        Fact("sqlite.error", "  error", cache.error),
    )
    return View((Facts(facts),))


def _page(report_path: str | None) -> str | None:
    """The report's page for people, where there was room for it."""
    page = "" if report_path is None else f"{report_path.removesuffix('.json')}.html"
    return page if os.path.exists(page) else None


def _ok(ok: bool) -> Toned:  # noqa: FBT001 - what the answer says
    return Toned(ok, GOOD, "ok") if ok else Toned(ok, BAD, "not ok")


def _wanted(value: bool | None) -> Toned | None:  # noqa: FBT001
    return None if value is None else Toned(value, GOOD if value else BAD)
