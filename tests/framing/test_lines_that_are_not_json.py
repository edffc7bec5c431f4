"""What is INVALID_JSON, in bytes that no JSON file could hold; the process lives on (contract, section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.environment import worker_environment
from tests.support.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.responses import Responses

HEALTH = b'{"action":"healthcheck"}'


@pytest.fixture(scope="module")
def enduring(responses: Responses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """One worker that outlives every line of this file, and then ends with status 0."""
    folder = tmp_path_factory.mktemp("enduring")
    worker = Worker(worker_environment({"CHECKPOINT_DATA_DIR": str(folder)}), responses)
    try:
        yield worker
        assert worker.finish() == []
    finally:
        worker.kill()


def answer_to(worker: Worker, line: bytes) -> str | None:
    """The code that a line is answered with; the line after it must be served."""
    worker.send_raw(line + b"\n" + HEALTH + b"\n")
    first, second = worker.read_lines(2)
    assert second["success"], second
    code: str | None = first["code"]
    return code


def save(state: bytes) -> bytes:
    """A cache request with this text as its state."""
    return b'{"action":"cache","workflow_id":"wf","step_id":"s","state_data":' + state + b"}"


@pytest.mark.parametrize(
    "line",
    [
        save(b'{"x":"\xff"}'),
        save(b'{"x":"\xc3"}'),
        save(b'{"x":"\xc0\xaf"}'),
        save(b'{"x":"\xed\xa0\x80"}'),
        save(b'{"x":"\xf4\x90\x80\x80"}'),
        save(b'{"deep":[[{"x":["\xe4\xb8"]}]]}'),
        save(b'{"\xff":1}'),
        b'{"action":"cache","workflow_id":"\xff","step_id":"s","state_data":{}}',
        b'{"action":"\xff"}',
        b'{"action":"healthcheck","\xff":1}',
        b"\xff" + HEALTH,
        HEALTH + b"\xff",
        b"\xff\xfe" + HEALTH.decode().encode("utf-16-le"),
    ],
)
def test_invalid_utf_8_anywhere_is_invalid_json(enduring: Worker, line: bytes) -> None:
    """Bytes that are not UTF-8 are refused wherever they stand, also deep inside a state."""
    assert answer_to(enduring, line) == "INVALID_JSON"


@pytest.mark.parametrize(
    "text",
    [
        rb'"\ud800"',
        rb'"\udfff"',
        rb'"\uDBFF and more"',
        rb'"\ud800\ud800"',
        rb'"\udc00\ud800"',
        rb'"\ud83d\n\ude00"',
        rb'"\ud83d\u0041"',
        rb'"\\\ud800"',
        rb'[1,{"a":["\uD800"]}]',
        rb'{"\ud800":1}',
    ],
)
def test_a_lone_surrogate_is_invalid_json(enduring: Worker, text: bytes) -> None:
    """Half a surrogate pair, which no UTF-8 text can hold, is refused also inside a state."""
    assert answer_to(enduring, save(b'{"x":' + text + b"}")) == "INVALID_JSON"


@pytest.mark.parametrize("field", [b"workflow_id", b"step_id", b"tenant_id", b"action", b"\\ud800"])
def test_a_lone_surrogate_outside_of_the_state_is_invalid_json(enduring: Worker, field: bytes) -> None:
    """The same in every other field, and in the name of one."""
    assert answer_to(enduring, b'{"' + field + rb'":"a\udc00"}') == "INVALID_JSON"


@pytest.mark.parametrize(
    "text",
    [rb'"\ud83d\ude00"', rb'"\\ud800"', rb'"\\\\ud800"', rb'"\\\ud83d\uDE00\\"', rb'"\u0000\/"', b'"\xf0\x9f\x98\x80"'],
)
def test_pairs_and_escaped_backslashes_are_no_lone_surrogates(enduring: Worker, text: bytes) -> None:
    """A proper pair, and a backslash followed by the letters of one, are fine and come back as they were."""
    state = b'{"x":' + text + b"}"
    assert answer_to(enduring, save(state)) is None
    enduring.ask({"action": "cached_get", "workflow_id": "wf", "step_id": "s"})
    assert b'"state_data":' + state in enduring.raw[-1]


@pytest.mark.parametrize("word", [b"NaN", b"Infinity", b"-Infinity", b"nan", b"undefined", b"True", b"None"])
def test_words_that_json_does_not_have_are_invalid_json(enduring: Worker, word: bytes) -> None:
    """NaN and its kin are refused, inside a state and outside."""
    assert answer_to(enduring, save(b'{"x":[' + word + b"]}")) == "INVALID_JSON"
    assert answer_to(enduring, b'{"action":"healthcheck","tenant_id":' + word + b"}") == "INVALID_JSON"


@pytest.mark.parametrize("between", [b"", b" ", b"\t", b",", b"\r", b"\x00", b"\x1e", "\u2028".encode()])
def test_two_values_on_one_line_are_invalid_json(enduring: Worker, between: bytes) -> None:
    """One line, one answer: a second value on the line is never served, nor the first."""
    assert answer_to(enduring, HEALTH + between + HEALTH) == "INVALID_JSON"


@pytest.mark.parametrize(
    "line",
    [
        b'{"action":"healthcheck","action":"healthcheck"}',
        b'{"action":"healthcheck","\\u0061ction":"get"}',
        b'{"\\u0061\\u0063tion":"get","action":"healthcheck"}',
        b' { "action" : "healthcheck" ,\t"action"\t: "get" } ',
        b'{ "action" : "healthcheck" , "state_data" : { "a" : 1 } , "state_data" : { "a" : 1 } }',
        b'{"state_data":{"a":1},"action":"healthcheck","state_data":{"a":1}}',
        b'{"state_data":[1],"action":"healthcheck","state_data":[1,2]}',
        b'{"state_data":[1,2],"action":"healthcheck","state_data":[1]}',
        b'{"action":"healthcheck","state_data":{"x":"\\"action\\":"},"tenant_id":null,"tenant_id":null}',
        b'{"action":"healthcheck","\xc3\xa9":1,"\\u00e9":1}',
        b'{"action":"healthcheck","":1,"":2}',
    ],
)
def test_a_key_given_twice_is_invalid_json(enduring: Worker, line: bytes) -> None:
    """A repeated key at the top level is refused however it is spelt, whatever its values are."""
    assert answer_to(enduring, line) == "INVALID_JSON"


@pytest.mark.parametrize(
    "line",
    [
        b'{"action":"healthcheck","state_data":{"action":"get","a":1,"a":2}}',
        b' {\t"action" : "healthcheck" , "state_data" : { "state_data" : { "action" : [ "action" , "action" ] } } } ',
        b'{"\\u0061ction":"healthcheck","state_data":["\\"action\\":1,\\"action\\":2"]}',
        b'{"action":"healthcheck","tenant_id":"action","workflow_id":"action"}',
    ],
)
def test_the_same_word_in_other_places_is_no_repeated_key(enduring: Worker, line: bytes) -> None:
    """What looks like a repeated key inside a state or a string is data."""
    assert answer_to(enduring, line) is None


@pytest.mark.parametrize(("opening", "inmost", "closing"), [(b"[", b"", b"]"), (b'{"a":', b"1", b"}")])
def test_500_levels_of_nesting_are_taken(enduring: Worker, opening: bytes, inmost: bytes, closing: bytes) -> None:
    """A state of 500 levels comes back as it was."""
    state = b'{"x":' + opening * 499 + inmost + closing * 499 + b"}"
    assert answer_to(enduring, save(state)) is None
    enduring.ask({"action": "cached_get", "workflow_id": "wf", "step_id": "s"})
    assert b'"state_data":' + state in enduring.raw[-1]


@pytest.mark.parametrize(
    "line",
    [
        save(b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b"}"),
        save(b'{"x":' + b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"}"),
        save(b'{"x":' + b"[" * 200_000),
        b'{"action":"healthcheck","tenant_id":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b"[" * 200_000 + b"]" * 200_000,
        b"[" * 200_000,
    ],
    ids=["arrays", "objects", "never closed", "outside of the state", "the line itself", "the line, never closed"],
)
def test_200000_levels_of_nesting_are_invalid_json(enduring: Worker, line: bytes) -> None:
    """Nesting that no parser takes is refused and ends nothing."""
    assert answer_to(enduring, line) == "INVALID_JSON"


@pytest.mark.parametrize(
    "line", [b"\x00", b"\x0b", b"\x0c" + HEALTH, b"{}" + b"\x00" * 100, b'{"action":"health\tcheck"}']
)
def test_stray_control_characters_are_invalid_json(enduring: Worker, line: bytes) -> None:
    """Control characters, NUL included, are neither blank lines nor white space."""
    assert answer_to(enduring, line) == "INVALID_JSON"
