"""Verify tells its counts where its report has no room, however many differences there are (contract, section 3, verify)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection

COUNT = 5_000  # their ids alone take over a mebibyte, more than a report holds in memory
INSERT = """
    INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)
    SELECT 'wf', 'step ' || lpad(n::text, 5, '0') || repeat('x', 240), '{}' FROM generate_series(1, %s) AS n"""
# No file of this process grows beyond half a mebibyte, wherever it is: neither a report nor what is spooled for it.
ON_A_SMALL_DISK = ("/bin/sh", "-c", 'ulimit -f 1024; exec "$@"', "sh", sys.executable, str(RUNNER))


def _no_folder(reports: Path) -> None:
    reports.write_text("mine", encoding="utf-8")


def _no_files_in_it(reports: Path) -> None:
    reports.symlink_to("/proc/self")


def _is_there(reports: Path) -> None:
    reports.mkdir(mode=0o700)


@pytest.mark.parametrize(
    ("prepare", "argv"),
    [
        (_no_folder, (sys.executable, str(RUNNER))),
        (_no_files_in_it, (sys.executable, str(RUNNER))),
        (_is_there, ON_A_SMALL_DISK),
    ],
    ids=["a file in the place of the folder", "a folder without files", "a full disk"],
)
def test_the_counts_come_without_the_report(
    prepare: Callable[[Path], None],
    argv: tuple[str, ...],
    start_worker: StartWorker,
    folder: Path,
    sql: Connection,
) -> None:
    """Five thousand rows are not cached: success with that count, the first 1000, no report_path, and why not."""
    worker = start_worker(argv=argv)
    done(worker, "save", workflow_id="wf", step_id="cached", state_data={})
    sql.execute(INSERT, (COUNT,))
    prepare(folder / "reports")
    answer = done(worker, "verify")
    assert (answer["consistent"], answer["pg_count"], answer["sqlite_count"]) == (False, COUNT + 1, 1)
    assert answer["mismatch_counts"] == {"data_mismatch": 0, "cache_only": 0, "pg_only": COUNT}
    assert [row["step_id"][:10] for row in answer["mismatches"]["pg_only"][:2]] == ["step 00001", "step 00002"]
    assert answer["report_path"] is None
    assert str(folder / "reports") in answer["report_error"]
    assert done(worker, "cached_get", workflow_id="wf", step_id="cached")["source"] == "sqlite"
    assert worker.finish() == []
