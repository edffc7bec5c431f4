"""Whatever bytes come: one valid answer for each line, nothing else on stdout, alive at the end (contract, section 1)."""

from __future__ import annotations

from random import Random

import pytest

from tests.fuzz.corpus import golden_lines
from tests.fuzz.mutation import Mutator
from tests.fuzz.verdict import Verdict, lines_of, verdict
from tests.support.program import table_of

HEALTH = b'{"action":"healthcheck"}'


def test_generated_and_damaged_lines_are_each_answered_once(database_url: str) -> None:
    """Some seconds of strange bytes in pieces of any size show no finding."""
    table = table_of("fuzz", "--seconds", "3", server=database_url)
    assert "answered with success" in table
    assert "answered with INVALID_JSON" in table


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (HEALTH, Verdict("healthcheck", None)),
        (b" " + HEALTH + b" \t\r", Verdict("healthcheck", None)),
        (b'{"action":"nothing"}', Verdict(None, "UNKNOWN_ACTION")),
        (b"{}", Verdict(None, "UNKNOWN_ACTION")),
        (b"[]", Verdict(None, "INVALID_JSON")),
        (HEALTH + HEALTH, Verdict(None, "INVALID_JSON")),
        (b"\xef\xbb\xbf" + HEALTH, Verdict(None, "INVALID_JSON")),
        (b'{"action":"healthcheck","x":"\xff"}', Verdict(None, "INVALID_JSON")),
        (b'{"action":"healthcheck","x":"\\ud800"}', Verdict(None, "INVALID_JSON")),
        (b'{"action":"healthcheck","x":{"a":"\\udfff","a":1}}', Verdict(None, "INVALID_JSON")),
        (b'{"action":"healthcheck","x":{"a":1,"a":1}}', Verdict("healthcheck", None)),
        (b'{"action":"healthcheck","\\u0061ction":"healthcheck"}', Verdict(None, "INVALID_JSON")),
        (b'{"action":"healthcheck","x":NaN}', Verdict(None, "INVALID_JSON")),
        (b'{"action":"healthcheck","x":' + b"9" * 5000 + b"}", Verdict("healthcheck", None)),
        (b'{"action":"healthcheck","x":' + b"[" * 600 + b"]" * 600 + b"}", Verdict("healthcheck", None, open=True)),
        (HEALTH + b" " * 100_000, Verdict(None, "REQUEST_TOO_LARGE")),
    ],
)
def test_the_verdict_on_a_line_is_that_of_the_contract(line: bytes, expected: Verdict) -> None:
    """What the fuzzer expects of a line is what sections 1 and 2 of the contract say."""
    assert verdict(line, 100_000) == expected


def test_the_verdict_tells_a_wrong_answer() -> None:
    """An outage without a fault, an answer of another kind and a refusal of what is a request are breaches."""
    request = verdict(HEALTH, 1000)
    assert request.breach(None) is None
    assert request.breach("INVALID_ARG") is None
    assert request.breach("INVALID_JSON") is not None
    assert request.breach("INTERNAL_ERROR") is not None
    assert request.breach("PG_READ_ERROR") is not None
    assert verdict(b"[]", 1000).breach(None) is not None
    assert verdict(b"[]", 1000).breach("INVALID_JSON") is None


def test_blank_lines_want_no_answer() -> None:
    """Only lines with something besides spaces, tabs and carriage returns are counted."""
    assert lines_of(b"\n \t\r\n" + HEALTH + b"\r\n\n\x0b\n" + HEALTH) == [HEALTH + b"\r", b"\x0b", HEALTH]


def test_a_seed_gives_the_same_lines_again() -> None:
    """What is sent follows from the printed seed."""
    first, second = (Mutator(golden_lines(), Random(7)) for _ in range(2))
    assert [first.line() for _ in range(200)] == [second.line() for _ in range(200)]
    assert len(first.long_line(5000)) == 5000


def test_what_an_answer_told_is_given_back() -> None:
    """Tokens and cursors of answers take the place of the placeholders of golden lines."""
    mutator = Mutator([b'{"action":"pending","cursor":"<string:page2>"}'], Random(7))
    mutator.told = [b'"told before"']
    assert b'{"action":"pending","cursor":"told before"}' in {mutator.line() for _ in range(50)}
