"""What each write leaves in its row, so that it can be found out later whether it was carried out."""

from __future__ import annotations

import os


def new_write_id() -> str:
    """A random UUID as PostgreSQL writes it; the module `uuid` would take milliseconds to import."""
    digits = os.urandom(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
