"""What a person types, as the values of a request. Each function raises ArgumentTypeError for what it cannot read."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentTypeError

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"([0-9]{1,12})([smhdw]?)", re.ASCII)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def content(given: str) -> bytes:
    """The bytes meant: of a file for `@FILE`, of stdin for `-`, else of the argument itself."""
    if given != "-" and not given.startswith("@"):
        return given.encode("utf-8", "surrogateescape")
    try:
        if given == "-":
            read = sys.stdin.buffer.read()
        else:
            with open(given[1:], "rb") as file:
                read = file.read()
    except OSError as error:
        raise ArgumentTypeError(f"cannot read {given[1:] or 'stdin'}: {error.strerror}") from None
    return read.removeprefix(_BYTE_ORDER_MARK)


def text(given: str) -> str:
    """The same as text."""
    try:
        return content(given).decode()
    except UnicodeDecodeError:
        raise ArgumentTypeError("what was given is not text in UTF-8") from None


def word(given: str) -> str:
    """The same, without the line end that a file or a pipe has after a single word."""
    return text(given).rstrip("\r\n")


def duration(given: str) -> int:
    """Seconds, of a number with s, m, h, d or w after it; without one it is in seconds."""
    found = _DURATION.fullmatch(given)
    if found is None:
        raise ArgumentTypeError(f"{given!r} is no time: a whole number and s, m, h, d or w, such as 90s, 12h or 30d")
    return int(found[1]) * SECONDS[found[2]]
