"""A page of rows that ends at its limit of rows or of bytes, whichever comes first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from checkpoint.approval.row import ApprovalRow
    from checkpoint.record import Record

R = TypeVar("R", "Record", "ApprovalRow")

PAGE_BYTES = 64 * 1024 * 1024
STREAM_ROWS = 16  # that many lie in memory at once while rows stream


def page_of(rows: Iterable[R], limit: int) -> tuple[list[R], bool]:
    """Up to `limit` of the rows, at least one and no more than 64 MiB of states, and whether more follow."""
    page: list[R] = []
    size = 0
    for row in rows:
        bytes_of_row = len(row.state_data or b"")
        if len(page) == limit or (page and size + bytes_of_row > PAGE_BYTES):
            return page, True
        size += bytes_of_row
        page.append(row)
    return page, False
