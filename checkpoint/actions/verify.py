"""`verify`: whether cache and database agree, key by key and state by state (contract, section 3)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from checkpoint import clock
from checkpoint.cache.failure import CacheError
from checkpoint.comparison import Comparison
from checkpoint.errors import CheckpointError
from checkpoint.folder import in_utf8
from checkpoint.record import instant
from checkpoint.report import Report

if TYPE_CHECKING:
    from checkpoint.comparison import Key
    from checkpoint.record import Digest
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:
    """The counts, the first differences, and the path of a report with all of them."""
    workflow_id, tenant_id = arguments.get("workflow_id"), arguments.get("tenant_id")
    started = time.monotonic()
    checked_at = clock.now_ms() * 1000
    try:
        comparison, report = _compare(runtime, workflow_id, tenant_id)
    except CacheError as error:
        if not error.damaged:
            raise _failed(runtime, str(error)) from None
        try:  # the damaged file has been moved aside: the cache is empty now, and that can be told
            comparison, report = _compare(runtime, workflow_id, tenant_id)
        except CacheError as second:
            raise _failed(runtime, str(second)) from None
    data: dict[str, Any] = {
        "workflow_id": workflow_id,
        "tenant_id": tenant_id,
        "consistent": not any(report.counts.values()),
        "pg_count": comparison.authority_count,
        "sqlite_count": comparison.cache_count,
        "mismatch_counts": report.counts,
    }
    written = _write(runtime, report, data | {"checked_at": clock.iso(checked_at)})
    return (
        data
        | written
        | {
            "mismatches": report.listed,
            "checked_at": instant(checked_at),
            "elapsed_sec": round(time.monotonic() - started, 6),
        }
    )


def _compare(runtime: Runtime, workflow_id: str | None, tenant_id: str | None) -> tuple[Comparison, Report]:
    def look_again(keys: list[Key]) -> tuple[dict[Key, Digest], dict[Key, Digest]]:
        cached = runtime.cache.digests_of(keys, tenant_id)
        return runtime.authority.digests_of(keys, tenant_id), cached

    comparison, report = Comparison(look_again), Report(runtime.settings.reports_dir)
    stored = runtime.watched("verify", runtime.authority.digests(workflow_id, tenant_id))
    for difference in comparison.differences(stored, runtime.cache.digests(workflow_id, tenant_id)):
        report.add(difference)
    return comparison, report


def _write(runtime: Runtime, report: Report, summary: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"report_path": in_utf8(report.write(summary))}
    except OSError as error:
        reason = (
            f"the report could not be written: {error.strerror}; make {in_utf8(runtime.settings.reports_dir)} writable"
        )
        return {"report_path": None, "report_error": reason}


def _failed(runtime: Runtime, reason: str) -> CheckpointError:
    runtime.log("ERROR", "verify failed", reason=reason)
    return CheckpointError("VERIFY_FAILED", f"{reason}; nothing is said about the two sides")
