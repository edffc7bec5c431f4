"""After the storm: every cache made anew, and everything that stands compared with PostgreSQL and with the ledger."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.chaos import ledger as book
from tests.support import cache_file
from tests.support.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.chaos.ledger import Key, Ledger
    from tests.support.responses import Responses

ENTRIES = "SELECT workflow_id, step_id, tenant_id, state_data, id, revision FROM checkpoint_cache WHERE state_data IS NOT NULL"

Rows = dict[tuple[str, str], dict[str, Any]]


def hold_to_the_book(ledger: Ledger, keys: Sequence[Key], rows: Rows) -> None:
    """What stands in PostgreSQL in the end is no less than what was acknowledged, and nothing else."""
    left = dict(rows)
    for key in keys:
        row = left.pop((key.workflow_id, key.step_id), None)
        if row is not None:
            row = row | {"state_data": json.loads(row["state_data"])}
        ledger.judge("the end", key, row, {book.LOST: key.floor})
    for stray in left:
        ledger.wrong(book.NEVER_SAVED, f"in the end PostgreSQL has {stray}")


def hold_the_cache(
    ledger: Ledger, environment: Mapping[str, str], folder: Path, responses: Responses, rows: Rows
) -> int:
    """One rebuild makes the cache of `folder` equal to PostgreSQL; how many entries were compared."""
    worker = Worker({**environment, "CHECKPOINT_DATA_DIR": str(folder)}, responses)
    try:
        rebuilt = worker.request({"action": "rebuild"})
        if not rebuilt["success"] or rebuilt["data"]["rebuilt_count"] != len(rows):
            ledger.wrong(book.CACHE_DIFFERS, f"the last rebuild of {folder.name} was answered {rebuilt}")
        verified = worker.request({"action": "verify"})
        if not verified["success"] or not verified["data"]["consistent"]:
            ledger.wrong(book.CACHE_DIFFERS, f"the verify after it was answered {verified}")
        worker.finish()
    finally:
        worker.kill()
    entries: Rows = {
        (workflow_id, step_id): {"tenant_id": tenant, "state_data": state, "id": row_id, "revision": revision}
        for workflow_id, step_id, tenant, state, row_id, revision in cache_file.query(folder, ENTRIES)
    }
    for key in rows.keys() | entries.keys():
        if rows.get(key) == entries.get(key):
            ledger.right()
        else:
            ledger.wrong(
                book.CACHE_DIFFERS, f"{folder.name} has {_short(entries, key)}, PostgreSQL {_short(rows, key)}"
            )
    return len(rows.keys() | entries.keys())


def _short(rows: Rows, key: tuple[str, str]) -> str:
    row = rows.get(key)
    return f"{key}: nothing" if row is None else f"{key}: {row | {'state_data': row['state_data'][:60]}}"
