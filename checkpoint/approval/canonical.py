"""The one spelling of a JSON value that hashes and tokens are taken over (contract, section 5)."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_encode = msgspec.json.Encoder(order="deterministic").encode


class RepeatedKey(ValueError):
    """An object gives one key twice, so that it has no one meaning."""


def canonical_text(text: bytes | str) -> bytes:
    """The canonical spelling of valid JSON text, in UTF-8.

    Keys are sorted by code point, white space goes, number tokens stay as they are, strings have the shortest escapes.
    Raises RepeatedKey, and RecursionError where the nesting is deeper than Python follows.
    """
    return _encode(json.loads(text, object_pairs_hook=object_of, parse_int=msgspec.Raw, parse_float=msgspec.Raw))


def canonical(value: Mapping[str, str | None] | Sequence[str]) -> bytes:
    """The same of a value that holds no numbers. Raises UnicodeEncodeError for half a surrogate pair."""
    return _encode(value)


def object_of(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The object with these members. Raises RepeatedKey."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise RepeatedKey
    return members


def digest(spelling: bytes) -> str:
    """SHA-256, as 64 lower-case hexadecimal digits."""
    return sha256(spelling).hexdigest()
