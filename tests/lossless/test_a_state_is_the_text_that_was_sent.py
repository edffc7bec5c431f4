"""What get, list and cached_get answer is the JSON text that save was sent, character for character (contract, section 2)."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from tests.support.asking import done
from tests.support.json_text import LARGE_STATES, STATES, holds

if TYPE_CHECKING:
    from tests.support.place import Place

NUMBER = itertools.count()
SETTINGS = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def hold(place: Place, text: str) -> None:
    """One state through every way there is."""
    worker = place.worker
    workflow = f"lossless {next(NUMBER)}"

    def same(action: str, source: str, **fields: object) -> None:
        answer = done(worker, action, workflow_id=workflow, **fields)
        assert answer["authority_source"] == source
        assert holds(worker.raw[-1], text), (action, source)

    worker.send_raw(f'{{"action":"save","workflow_id":"{workflow}","step_id":"s","state_data":{text}}}\n'.encode())
    answer = worker.read_line()
    assert answer["success"], answer
    assert done(worker, "verify", workflow_id=workflow)["consistent"] is True
    same("cached_get", "sqlite", step_id="s")
    same("get", "pg", step_id="s")
    same("list", "pg")
    assert done(worker, "rebuild", workflow_id=workflow)["rebuilt_count"] == 1
    same("cached_get", "sqlite", step_id="s")
    assert done(worker, "verify", workflow_id=workflow)["consistent"] is True


@SETTINGS
@given(text=STATES)
@example(text='{"a":18446744073709551616,"a":1.0,"a":1e16,"a":-0.0,"a":"\\u0000","a":"\\/"}')
@example(text='{"next":"\u2028\u2029\u0085","key \u2028":[" \\u2028 "]}')
@example(text='{"state_data":{"state_data":1},"success":false}')
@example(text="{" + '"a":{' * 199 + "}" * 199 + "}")
@example(text='{"deep":' + "[" * 199 + "]" * 199 + "}")
@example(text="{}")
@example(text="{\t}")
def test_any_state_comes_back_as_it_was_sent(place: Place, text: str) -> None:
    """Numbers in every spelling and size, every escape, keys given twice, depth to 200: the same text from every action."""
    hold(place, text)


@settings(SETTINGS, max_examples=5, phases=[Phase.explicit, Phase.generate])
@given(text=LARGE_STATES)
def test_states_of_megabytes_come_back_as_they_were_sent(place: Place, text: str) -> None:
    """The same for states of megabytes."""
    hold(place, text)


@settings(SETTINGS, max_examples=30)
@given(text=STATES)
def test_a_state_that_only_the_cache_knows_is_kept_alike(place: Place, text: str) -> None:
    """`cache` and then cached_get: the same text."""
    key = {"workflow_id": f"lossy {next(NUMBER)}", "step_id": "s"}
    ids = f'"workflow_id":"{key["workflow_id"]}","step_id":"s"'
    place.worker.send_raw(f'{{"action":"cache",{ids},"state_data":{text}}}\n'.encode())
    assert place.worker.read_line()["data"]["written"] is True
    done(place.worker, "cached_get", **key)
    assert holds(place.worker.raw[-1], text)


@pytest.mark.parametrize("position", ["first", "last", "twice deep"])
def test_the_place_in_the_request_does_not_matter(place: Place, workflow: str, position: str) -> None:
    """Wherever state_data stands in the line, and whatever stands inside it, it is that text that is kept."""
    text = '{"state_data":{"n":1.0},"action":"delete","n":1.00}'
    ids = f'"workflow_id":"{workflow}","step_id":"s"'
    lines = {
        "first": f'{{"state_data":{text},"action":"save",{ids}}}',
        "last": f'{{"action":"save",{ids},"state_data":{text}}}',
        "twice deep": f' {{ "action" : "save" , {ids} , "state\\u005fdata" :\t{text} }} ',
    }
    place.worker.send_raw(lines[position].encode() + b"\n")
    assert place.worker.read_line()["success"]
    done(place.worker, "get", workflow_id=workflow, step_id="s")
    assert f'"state_data":{text}'.encode() in place.worker.raw[-1]
