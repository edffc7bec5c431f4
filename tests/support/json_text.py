"""JSON as text: generated in every spelling, and compared without the white space that means nothing."""

from __future__ import annotations

import re

from hypothesis import strategies as st

MEBIBYTE = 1024 * 1024
_TOKEN = re.compile(rb'("[^"\\]*(?:\\.[^"\\]*)*")|[ \t\r\n]+')

DIGITS = st.text("0123456789", min_size=1, max_size=60)
WHOLE = st.one_of(
    st.just("0"),
    st.builds(lambda first, rest: first + rest, st.sampled_from("123456789"), st.one_of(st.just(""), DIGITS)),
)
FRACTION = st.one_of(st.just(""), DIGITS.map(lambda digits: f".{digits}"))
EXPONENT = st.one_of(
    st.just(""),
    st.builds(
        lambda e, sign, digits: e + sign + digits, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), DIGITS
    ),
)
NUMBERS = st.builds(
    lambda *parts: "".join(parts), st.sampled_from(["", "-"]), WHOLE, FRACTION, EXPONENT
) | st.sampled_from(
    [
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1.00",
        "1e16",
        "1E+400",
        "1e-400",
        "18446744073709551616",
        "0.1e1",
        "9" * 3000,
        "-1.7976931348623157e309",
    ]
)

ESCAPES = st.sampled_from(
    [
        '\\"',
        "\\\\",
        "\\/",
        "\\b",
        "\\f",
        "\\n",
        "\\r",
        "\\t",
        "\\u0000",
        "\\u2028",
        "\\uD83D\\uDE00",
        "\\uFFFF",
        "\\u0041",
        "\\u00e9",
        "\\u000a",
        "\\u000D",
    ]
)
HEX_ESCAPES = st.integers(0, 0xD7FF).map(lambda code: f"\\u{code:04x}") | st.integers(0xE000, 0xFFFF).map(
    lambda code: f"\\u{code:04X}"
)
PLAIN = st.characters(min_codepoint=0x20, exclude_characters='"\\', exclude_categories=["Cs"])
RAW = st.sampled_from(["\u2028", "\u2029", "\u0085", "\u007f", "\ufeff", "\U0001f600", "\U0010ffff", "\u0301", " "])
STRINGS = st.lists(PLAIN | ESCAPES | HEX_ESCAPES | RAW, max_size=12).map(lambda parts: '"' + "".join(parts) + '"')

SPACE = st.sampled_from(["", "", "", " ", "\t", "  \t", "\r"])
SCALARS = NUMBERS | STRINGS | st.sampled_from(["true", "false", "null"])
KEYS = STRINGS | st.sampled_from(
    ['"a"', '"b"', '""', '"state_data"', '"action"', '"\\u0061"']
)  # so that keys come twice


def _array(items: list[str], space: str) -> str:
    return f"[{space}" + f"{space},".join(items) + f"{space}]"


def _object(members: list[tuple[str, str]], space: str) -> str:
    return (
        f"{{{space}" + f"{space},{space}".join(f"{key}{space}:{space}{value}" for key, value in members) + f"{space}}}"
    )


def _containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(_array, st.lists(inner, max_size=4), SPACE) | objects(inner)


def objects(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Texts of objects whose values are texts of `inner`; keys may be given twice."""
    return st.builds(_object, st.lists(st.tuples(KEYS, inner), max_size=5), SPACE)


VALUES = st.recursive(SCALARS, _containers, max_leaves=12)


def _nested(opening: str, depth: int, inside: str) -> str:
    closing = {"[": "]", '{"a":': "}", '{"a":[': "]}"}[opening]
    return opening * depth + inside + closing * depth


DEEP = st.builds(_nested, st.sampled_from(["[", '{"a":', '{"a":[']), st.integers(1, 99), SCALARS)
LARGE = st.builds(
    lambda piece, size: '"' + piece * (size // len(piece.encode())) + '"',
    st.sampled_from(["x", "é", "\\n", "\\u0000", "\u2028", "\U0001f600"]),
    st.sampled_from([70_000, MEBIBYTE, 2 * MEBIBYTE]),
)
STATES = objects(st.one_of(VALUES, VALUES, VALUES, VALUES, DEEP))
LARGE_STATES = st.builds('{{"a":{},"large":{},"a":{}}}'.format, SCALARS, LARGE, SCALARS)


def holds(line: bytes, text: str) -> bool:
    """Whether the response line has a state_data that is this text, white space between tokens aside."""
    for one, other in ((line, text.encode()), (compact(line), compact(text.encode()))):
        _, found, rest = one.partition(b'"state_data":' + other)
        if found and rest[:1] in {b",", b"}"}:
            return True
    return False


def compact(text: bytes) -> bytes:
    """The same JSON without white space between its tokens."""
    return _TOKEN.sub(rb"\1", text)
