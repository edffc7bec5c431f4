"""What a line may be answered, found out without the product: by Python's own JSON reader and the list of actions."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, NoReturn

from tests.support.responses import SCHEMAS

ACTIONS = frozenset(path.name.removesuffix(".request.json") for path in SCHEMAS.glob("*.request.json"))
BLANK = b" \t\r"
SURELY_TAKEN_LEVELS = 500
# No fault is at work, so a code that speaks of one is wrong whatever the line was.
OUTAGES = frozenset(
    {
        *("PG_WRITE_ERROR", "PG_WRITE_UNKNOWN", "PG_READ_ERROR", "PG_LIST_ERROR", "DB_NOT_CONFIGURED"),
        *("VERIFY_FAILED", "REBUILD_FAILED", "OUTPUT_WRITE_ERROR", "OUTPUT_MISSING", "INTERNAL_ERROR"),
    }
)
OF_THE_LINE = frozenset({"INVALID_JSON", "REQUEST_TOO_LARGE", "UNKNOWN_ACTION"})


class Verdict(NamedTuple):
    """The action that a line asks for, where it has one, and the code that it must get, where there is only one.

    `open` tells that the line is nested so deeply that INVALID_JSON is right too.
    """

    action: str | None
    code: str | None
    open: bool = False

    def breach(self, code: str | None) -> str | None:
        """What is wrong with an answer of that code (None for a success); None where nothing is."""
        if code in OUTAGES:
            return f"answered with {code} while everything works"
        if self.code is not None and code != self.code and not self.open:
            return f"answered with {code or 'success'} instead of {self.code}"
        if self.code is None and code in OF_THE_LINE and not (self.open and code == "INVALID_JSON"):
            return f"answered with {code}, though it is a request"
        return None


def lines_of(stream: bytes) -> list[bytes]:
    """The lines of a stream that want an answer each."""
    return [line for line in stream.split(b"\n") if line.strip(BLANK)]


def verdict(line: bytes, limit: int) -> Verdict:
    """The verdict on a line without its line end; `limit` is that of the worker, in bytes."""
    if len(line) > limit:
        return Verdict(None, "REQUEST_TOO_LARGE")
    deep = line.count(b"[") + line.count(b"{") >= SURELY_TAKEN_LEVELS
    try:
        members = _members(line)
    except (ValueError, RecursionError):
        return Verdict(None, "INVALID_JSON")
    action = dict(members).get("action")
    if isinstance(action, str) and action in ACTIONS:
        return Verdict(action, None, open=deep)
    return Verdict(None, "UNKNOWN_ACTION", open=deep)


class _Members(list[tuple[str, Any]]):
    """A JSON object as its members, with those whose key is repeated."""


def _members(line: bytes) -> _Members:
    """The members of the one object on the line. Raises ValueError where it is none.

    RecursionError where it is too deep, which it is for the worker too: `main` gives this reader several times its room.
    """
    value = json.loads(
        line.decode("utf-8"),
        object_pairs_hook=_Members,
        parse_int=len,
        parse_float=len,
        parse_constant=_no_json,
    )
    if not isinstance(value, _Members):
        raise ValueError("no object")  # noqa: TRY004 - whatever is wrong with a line is a ValueError here
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # fails for a lone surrogate
    keys = [key for key, _ in value]
    if len(set(keys)) < len(keys):
        raise ValueError("a key is given twice")
    return value


def _no_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
