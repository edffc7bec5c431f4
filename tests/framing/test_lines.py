"""Where a request begins and ends, and that each is answered once and in order (contract, section 1)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.conftest import StartWorker
    from tests.support.worker import Worker

HEALTH = b'{"action":"healthcheck"}'


def cache_line(step: int | str, state: str = "{}") -> bytes:
    """A request that puts one state into the cache."""
    return f'{{"action":"cache","workflow_id":"wf","step_id":"{step}","state_data":{state}}}'.encode()


def steps(answers: list[dict[str, Any]]) -> list[str]:
    """The step that each answer is about."""
    return [answer["data"]["step_id"] for answer in answers]


def test_many_requests_then_the_end_of_input_give_as_many_answers_in_order(offline_worker: Worker) -> None:
    """Everything read is answered, in request order, and the exit status is 0."""
    offline_worker.send_raw(b"".join(cache_line(number) + b"\n" for number in range(2000)))
    assert steps(offline_worker.finish()) == [str(number) for number in range(2000)]


def test_refusals_stand_at_their_place_between_the_answers(offline_worker: Worker) -> None:
    """A bad line among good ones is answered at its own place, and the exit status is 0 all the same."""
    offline_worker.send_raw(
        cache_line(1) + b"\nnot json\n" + cache_line(2) + b'\n{"action":"nothing"}\n' + cache_line(3)
    )
    answers = offline_worker.finish()
    assert [answer["code"] for answer in answers] == [None, "INVALID_JSON", None, "UNKNOWN_ACTION", None]


def test_no_input_at_all_is_no_answer_and_no_fault(offline_worker: Worker) -> None:
    """The end of input as the first thing is a clean end."""
    assert offline_worker.finish() == []
    assert offline_worker.stderr == ""


def test_carriage_returns_before_the_line_break_are_accepted(offline_worker: Worker) -> None:
    """Lines that end in CR LF are served."""
    offline_worker.send_raw(cache_line(1) + b"\r\n" + cache_line(2) + b"\r\n\r\n" + cache_line(3) + b"\r\n")
    assert steps(offline_worker.finish()) == ["1", "2", "3"]


def test_a_byte_order_mark_at_the_start_is_accepted(offline_worker: Worker) -> None:
    """A UTF-8 BOM before the first request is not part of it."""
    offline_worker.send_raw(b"\xef\xbb\xbf" + cache_line(1) + b"\n" + cache_line(2) + b"\n")
    assert steps(offline_worker.finish()) == ["1", "2"]


def test_a_byte_order_mark_that_comes_in_pieces_is_accepted(offline_worker: Worker) -> None:
    """The BOM may be cut by the pipe anywhere."""
    for piece in (b"\xef", b"\xbb", b"\xbf", HEALTH):
        offline_worker.send_raw(piece)
        assert offline_worker.says_nothing(0.05)
    offline_worker.send_raw(b"\n")
    assert offline_worker.read_line()["success"]


def test_a_byte_order_mark_alone_is_a_blank_line(offline_worker: Worker) -> None:
    """A stream of a BOM and nothing else has no request."""
    offline_worker.send_raw(b"\xef\xbb\xbf\n" + HEALTH)
    assert len(offline_worker.finish()) == 1


def test_a_byte_order_mark_later_on_is_no_json(offline_worker: Worker) -> None:
    """Only the start of the stream may have a BOM."""
    offline_worker.send_raw(HEALTH + b"\n\xef\xbb\xbf" + HEALTH + b"\n" + HEALTH)
    assert [answer["code"] for answer in offline_worker.finish()] == [None, "INVALID_JSON", None]


def test_blank_lines_are_skipped(offline_worker: Worker) -> None:
    """Empty lines and lines of white space are no requests and get no answer."""
    offline_worker.send_raw(b"\n\n  \t\r\n" + cache_line(1) + b"\n\n \n" + cache_line(2) + b"\n\n\n   ")
    assert steps(offline_worker.finish()) == ["1", "2"]


def test_a_last_line_without_a_line_break_is_a_request(offline_worker: Worker) -> None:
    """What stands at the end of input without a line break is answered like any other line."""
    offline_worker.send_raw(cache_line(1) + b"\n" + cache_line(2))
    assert steps(offline_worker.finish()) == ["1", "2"]


def test_half_a_last_line_is_invalid_json(offline_worker: Worker) -> None:
    """A request cut off by the end of input is answered, as INVALID_JSON."""
    offline_worker.send_raw(HEALTH + b"\n" + HEALTH[:-5])
    assert [answer["code"] for answer in offline_worker.finish()] == [None, "INVALID_JSON"]


def test_half_a_line_holds_up_nothing_before_it(offline_worker: Worker) -> None:
    """A complete request is answered though half of the next is there; the half is answered when the rest comes."""
    whole = cache_line(2)
    offline_worker.send_raw(cache_line(1) + b"\n" + whole[:20])
    assert steps([offline_worker.read_line()]) == ["1"]
    assert offline_worker.says_nothing()
    offline_worker.send_raw(whole[20:] + b"\n")
    assert steps([offline_worker.read_line()]) == ["2"]


def test_a_line_may_come_byte_by_byte(offline_worker: Worker) -> None:
    """How the pipe cuts a line does not matter, not even inside a character."""
    line = cache_line("步骤-😀", '{"中":"é"}')
    for position in range(len(line)):
        offline_worker.send_raw(line[position : position + 1])
    offline_worker.send_raw(b"\n")
    assert steps([offline_worker.read_line()]) == ["步骤-😀"]


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 8_000_000])
def test_long_lines_come_through_whole(offline_worker: Worker, size: int) -> None:
    """A line as long as the pipe's buffer, and one of 8 MB, are served and come back as they were."""
    empty = cache_line("long", '{"x":""}')
    state = '{"x":"' + "é" * ((size - len(empty)) // 2) + "x" * ((size - len(empty)) % 2) + '"}'
    line = cache_line("long", state)
    assert len(line) == size
    offline_worker.send_raw(line + b"\n" + cache_line("after") + b"\n")
    assert steps(offline_worker.read_lines(2)) == ["long", "after"]
    offline_worker.ask({"action": "cached_get", "workflow_id": "wf", "step_id": "long"})
    assert state.encode() in offline_worker.raw[-1]


def test_only_a_line_feed_ends_a_line(offline_worker: Worker) -> None:
    """Other characters that some software takes for line ends are data, there and back."""
    state = '{"x":"\u2028\u2029\u0085\x7f"}'
    offline_worker.send_raw(cache_line(1, state) + b"\n")
    assert steps([offline_worker.read_line()]) == ["1"]
    entry = offline_worker.ask({"action": "cached_get", "workflow_id": "wf", "step_id": "1"})
    assert entry["state_data"] == json.loads(state)


def test_a_carriage_return_inside_a_request_does_not_reach_the_answer(offline_worker: Worker) -> None:
    """CR is white space in JSON: a state that has it between its tokens comes back on one line without it."""
    offline_worker.send_raw(cache_line(1, '{\r"a":\r[1,\r2]}') + b"\n")
    assert steps([offline_worker.read_line()]) == ["1"]
    entry = offline_worker.ask({"action": "cached_get", "workflow_id": "wf", "step_id": "1"})
    assert entry["state_data"] == {"a": [1, 2]}


def test_a_caller_that_asks_one_by_one_never_waits_for_a_second_line(offline_worker: Worker) -> None:
    """Each answer is there before the next request is written."""
    for number in range(200):
        assert steps([offline_worker.request(json.loads(cache_line(number)))]) == [str(number)]


def test_a_caller_that_never_stops_writing_gets_its_first_answers_early(start_offline_worker: StartWorker) -> None:
    """Answers are not held back for as long as requests keep coming: the first is there while the input goes on."""
    worker = start_offline_worker()
    sent = 0
    while not worker.raw:
        worker.send_raw(HEALTH + b"\n")
        sent += 1
        if not worker.says_nothing(0):
            worker.read_line()
        assert sent < 1_000_000
    assert len(worker.finish()) == sent - 1
