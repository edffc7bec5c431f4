"""What the exit status of a command tells a script."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checkpoint import results

if TYPE_CHECKING:
    from checkpoint.results import Result

FINE = 0
NOT_SO = 1  # there is none, it does not agree, it is not well, or the request was refused
USAGE = 2
DATABASE = 3
INTERRUPTED = 130

_USAGE_CODES = frozenset(("INVALID_ARG", "INVALID_JSON", "REQUEST_TOO_LARGE", "UNKNOWN_ACTION"))
_DATABASE_CODES = frozenset(("DB_NOT_CONFIGURED", "VERIFY_FAILED", "REBUILD_FAILED"))


def of_code(code: str) -> int:
    """The status of a failure."""
    if code in _USAGE_CODES:
        return USAGE
    return DATABASE if code in _DATABASE_CODES or code.startswith("PG_") else NOT_SO


def of_result(result: Result) -> int:
    """The status of a success: whether what was asked about is there, and well."""
    match result:
        case results.Got() | results.CachedGot():
            return FINE if result.found else NOT_SO
        case results.Verified():
            return FINE if result.consistent else NOT_SO
        case results.Health():
            return {"ok": FINE, "degraded": NOT_SO, "down": DATABASE}[result.status]
    return FINE
