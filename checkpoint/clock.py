"""The one wall clock that ages are taken from, so that a test can move it, and how a moment is written."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def now_ms() -> int:
    """Milliseconds since the epoch, as an integer."""
    return time.time_ns() // 1_000_000


def iso(micros: int, zone: tzinfo | None = None) -> str:
    """ISO 8601 with microseconds and offset, of microseconds since the epoch, in UTC or `zone` (contract 2)."""
    moment = _EPOCH + timedelta(microseconds=micros)
    if zone is not None:
        moment = moment.astimezone(zone)
    return moment.isoformat(timespec="microseconds")
