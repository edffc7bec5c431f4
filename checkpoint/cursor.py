"""Opaque cursors of paged answers, each bound to the filters it was made for (contract, section 3, list)."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import msgspec

from checkpoint.errors import CheckpointError


def encode(position: tuple[Any, ...], *filters: object) -> str:
    """The cursor that continues after `position` under the same filters."""
    body = msgspec.json.encode((_mark(filters), position))
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


def decode(cursor: str, shape: Any, *filters: object) -> tuple[Any, ...]:
    """The position in `cursor`, of the tuple type `shape`. Raises INVALID_ARG where it was made for other filters."""
    try:
        body = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        mark, position = msgspec.json.decode(body, type=tuple[int, shape])
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        mark, position = None, ()
    if mark != _mark(filters) or any("\0" in part for part in position if isinstance(part, str)):
        raise CheckpointError(
            "INVALID_ARG", "cursor is not one of this list; send a next_cursor with the same filters, or none to begin"
        )
    return tuple(position)


def _mark(filters: tuple[object, ...]) -> int:
    return zlib.crc32(msgspec.json.encode(filters))
