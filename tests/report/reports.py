"""Reports made of differences that nobody has to bring about in a database first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.comparison import KINDS, Difference
from checkpoint.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

REASONS = ("behind", "ahead", "no_revision", "damaged")
CHECKED_AT = "2026-11-30T16:15:22.123456+00:00"


def differences(count: int) -> Iterable[Difference]:
    """That many, of each kind and reason in turn; every tenth step id would be a script, if it were taken for HTML."""
    for number in range(count):
        kind = KINDS[number % 3]
        reason = REASONS[number // 3 % 4] if kind == "data_mismatch" else None
        step = f"step {number:06}" + ("</script><script>document.title='broken'</script>" if number % 10 == 0 else "")
        yield Difference(kind, f"orders-{number // 7:05}", step, reason)


def write_report(folder: Path, found: Iterable[Difference], **summary: Any) -> tuple[Path, Path]:
    """The JSON and the page of a report on these differences; `summary` is laid over what else it says."""
    report = Report(str(folder))
    for difference in found:
        report.add(difference)
    told = {
        "workflow_id": None,
        "tenant_id": None,
        "consistent": not any(report.counts.values()),
        "pg_count": 12345,
        "sqlite_count": 6789,
        "mismatch_counts": report.counts,
        "checked_at": CHECKED_AT,
    }
    path = report.write(told | summary)
    return folder / path, (folder / path).with_suffix(".html")
