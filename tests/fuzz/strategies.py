"""Request lines as Hypothesis strategies: right in form, with values right and wrong, spelt in every way JSON allows."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.verdict import ACTIONS
from tests.support.responses import SCHEMAS

IDS = st.one_of(
    st.sampled_from(
        ["wf", "s1", "s2", "步骤", "a b", " a", "é", "e\u0301", "x" * 255, "x" * 256, "😀" * 255, "default", "t"]
    ),
    st.sampled_from(
        ["", " ", "\u2028", "\u00a0", "a\u0085", "a\x00b", "\x1f", "a\n", "%", "_", "'", '"', "\\", "\ud7ff\ue000"]
    ),
    st.text(max_size=8),
)
DIGITS = st.text("0123456789", min_size=1, max_size=25)
NUMBERS = st.one_of(
    st.integers(-3, 12).map(str),
    st.sampled_from(["0", "-0", "1.0", "1e0", "10e-1", "1E+2", "1e400", "-1e-400", "1" * 30, "9223372036854775807"]),
    st.sampled_from(["9223372036854775808", "-9223372036854775809", "1e18", "10000", "10001", "1.5", "0.1e1"]),
    st.builds("{}.{}e{}".format, DIGITS.map(lambda digits: digits.lstrip("0") or "0"), DIGITS, st.integers(-400, 400)),
)


def _escaped(text: str, hard: bool) -> str:
    return json.dumps(text, ensure_ascii=hard)


STRINGS = st.builds(_escaped, IDS, st.booleans())
SPACE = st.sampled_from(["", "", "", " ", "\t", "\r", "  "])
SCALARS = st.one_of(STRINGS, NUMBERS, st.sampled_from(["null", "true", "false"]))


def _object(members: list[tuple[str, str]], space: str) -> str:
    return "{" + ("," + space).join(f"{key}{space}:{space}{value}" for key, value in members) + space + "}"


def _array(items: list[str], space: str) -> str:
    return "[" + ("," + space).join(items) + space + "]"


def _nested(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    members = st.lists(st.tuples(STRINGS, inner), max_size=4)
    return st.builds(_object, members, SPACE) | st.builds(_array, st.lists(inner, max_size=4), SPACE)


VALUES = st.recursive(SCALARS, _nested, max_leaves=12)
DEEP = st.builds(lambda levels, inner: '{"a":' * levels + inner + "}" * levels, st.integers(1, 480), SCALARS)
STATES = st.builds(_object, st.lists(st.tuples(STRINGS, VALUES), max_size=5), SPACE) | DEEP
CURSORS = (
    st.sampled_from(['""', '"AAAA"', '"e30"', '"WzEsMl0"', '"W251bGwsbnVsbF0"', '"====="', '"WyJsaXN0Il0"']) | STRINGS
)

_BY_TYPE: dict[str, st.SearchStrategy[str]] = {
    "string": STRINGS,
    "integer": NUMBERS,
    "boolean": st.sampled_from(["true", "false"]),
    "object": STATES,
}


def _fields() -> dict[str, dict[str, st.SearchStrategy[str]]]:
    """Of each action the fields that its schema names, each with a strategy for values of its type."""
    found = {}
    for action in sorted(ACTIONS):
        schema: dict[str, Any] = json.loads((SCHEMAS / f"{action}.request.json").read_text(encoding="utf-8"))
        found[action] = {
            name: CURSORS if name == "cursor" else _BY_TYPE.get(str(about.get("type")), VALUES)
            for name, about in schema["properties"].items()
            if name != "action"
        }
    return found


FIELDS = _fields()
EVERY_FIELD = sorted({name for fields in FIELDS.values() for name in fields} | {"tennant_id", "Action", ""})


@st.composite
def request_lines(draw: st.DrawFn) -> bytes:
    """One request of some action; most have the fields that it wants, some a strange one, a wrong type or one twice."""
    action = draw(st.sampled_from(sorted(FIELDS)))
    fields = FIELDS[action]
    members = [('"action"', json.dumps(action))]
    for name, values in fields.items():
        if draw(st.integers(0, 9)) < 8:
            members.append((json.dumps(name), draw(values)))
    for _ in range(draw(st.sampled_from([0, 0, 0, 0, 1, 2]))):
        key = draw(st.sampled_from(EVERY_FIELD).map(json.dumps) | STRINGS)
        members.append((key, draw(VALUES)))
    if draw(st.integers(0, 3)) == 0:
        members = draw(st.permutations(members))
    text = draw(SPACE) + _object(members, draw(SPACE)) + draw(SPACE)
    return text.encode("utf-8")


LINES = st.one_of(request_lines(), request_lines(), request_lines(), VALUES.map(str.encode), st.binary(max_size=40))
BATCHES = st.lists(LINES, min_size=1, max_size=25)
