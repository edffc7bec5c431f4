"""The short way for usual request lines reads what the way for any line reads, or leaves the line to it (contract 1)."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from checkpoint import envelope
from checkpoint.errors import CheckpointError

TEXTS = st.text(alphabet=st.sampled_from(["a", '"', "\\", "é", "😀", "\n", "\x7f", " "]), max_size=4)
VALUES = {
    "action": st.sampled_from(["save", "get", "é"]),
    "workflow_id": TEXTS,
    "step_id": TEXTS,
    "tenant_id": st.one_of(st.none(), TEXTS),
    "state_data": st.one_of(st.dictionaries(TEXTS, TEXTS, max_size=2), st.lists(st.integers(), max_size=2), TEXTS),
}


@st.composite
def lines(draw: st.DrawFn) -> bytes:
    """Objects of the usual fields, in any order, some of them twice or missing, with and without spaces and escapes."""
    names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=2, max_size=6))
    if draw(st.booleans()):
        names = draw(
            st.permutations(
                ["action", "workflow_id", "step_id", *draw(st.sets(st.sampled_from(["tenant_id", "state_data"])))]
            )
        )
    ascii_only = draw(st.booleans())
    colon, comma = draw(st.sampled_from([(":", ","), (":", ","), (": ", ","), (":", " ,")]))
    members = [json.dumps(name) + colon + json.dumps(draw(VALUES[name]), ensure_ascii=ascii_only) for name in names]
    return ("{" + comma.join(members) + "}").encode()


@given(lines())
def test_both_ways_tell_the_same(line: bytes) -> None:
    """Where the short way answers, the long one gives the very same; so a key given twice is never overlooked."""
    short = envelope._usual(line)
    if short is not None:
        assert short == envelope._any(line)


@given(lines())
def test_the_short_way_is_taken_for_what_is_usual(line: bytes) -> None:
    """Compact lines without escapes and repetitions do not need the long way."""
    try:
        request = envelope._any(line)
    except CheckpointError:
        assert envelope._usual(line) is None
        return
    usual = {"action", "workflow_id", "step_id"} <= request.fields.keys()
    compact = json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")).encode() == line
    plain = b"\\" not in line and b"null" not in line
    if usual and compact and plain:
        assert envelope._usual(line) is not None
