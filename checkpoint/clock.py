"""The one wall clock that ages are taken from, so that a test can move it, and how a moment is written."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = len("1970-01-01T00:00:00")


def now_ms() -> int:
    """Milliseconds since the epoch, as an integer."""
    return time.time_ns() // 1_000_000


@lru_cache(4096)  # the moments of an answer are often the same, and those of its neighbours
def iso(micros: int, zone: tzinfo | None = None) -> str:
    """ISO 8601 with microseconds and offset, of microseconds since the epoch, in UTC or `zone` (contract 2)."""
    seconds, fraction = divmod(micros, 1_000_000)
    moment, offset = _second(seconds, zone)
    return f"{moment}.{fraction:06d}{offset}"


@lru_cache(256)  # many moments share their second
def _second(seconds: int, zone: tzinfo | None) -> tuple[str, str]:
    moment = _EPOCH + timedelta(seconds=seconds)
    text = (moment if zone is None else moment.astimezone(zone)).isoformat()
    return text[:_SECOND], text[_SECOND:]
