"""Makes the picture of a report's page that README.md shows: `python -m tests.browser docs/images/verify-report.png`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from checkpoint.comparison import Difference
from tests.browser import chromium
from tests.report.reports import write_report

if TYPE_CHECKING:
    from collections.abc import Iterator

WIDTH, HEIGHT = 960, 1010


def example() -> Iterator[Difference]:
    """What an operator may find who has restored a cache file from yesterday."""
    for number in range(41, 53):
        yield Difference("data_mismatch", "orders-2026-07-07", f"page_{number}", "behind")
    yield Difference("data_mismatch", "orders-2026-07-07", "summary", "no_revision")
    for number in range(53, 56):
        yield Difference("pg_only", "orders-2026-07-07", f"page_{number}")


def main() -> None:
    """Writes the picture."""
    with TemporaryDirectory(prefix="orders-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        checked_at = datetime.now(UTC) - timedelta(minutes=4)
        _, page = write_report(
            place / "reports", example(), checked_at=checked_at.isoformat(timespec="microseconds"), sqlite_count=12342
        )
        with chromium.started(chromium.find(), place) as browser:
            browser.open(page, width=WIDTH, height=HEIGHT)
            browser.screenshot(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
