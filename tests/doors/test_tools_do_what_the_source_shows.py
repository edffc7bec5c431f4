"""The tools through the SDK's own client, in both eras of the protocol."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from tests.doors.client import Progress, noted
from tests.support.golden import Conversation, conversations, delete_cache, hold
from tests.support.process import until

if TYPE_CHECKING:
    from tests.doors.conftest import Era

EXAMPLES = [each for each in conversations() if each.name.startswith("example_")]


def test_both_eras_are_spoken(era: Era) -> None:
    """Client and server agree on the era that the client opens with."""
    assert era.session.protocol_version == era.version


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_an_example_of_the_source_gives_its_values(era: Era, example: Conversation) -> None:
    """Each answer of the golden conversation, as the result of a tool call."""
    era.session.ask("workflows", {})  # the tables are there
    era.spot.sql.execute("TRUNCATE workflow_checkpoints RESTART IDENTITY")
    delete_cache(era.spot.folder)
    same: dict[str, Any] = {}
    for number, step in enumerate(example.steps, 1):
        if step.get("do") == "delete_cache":
            delete_cache(era.spot.folder)
        else:
            request = json.loads(step["send"])
            text = era.session.ask_text(request.pop("action"), request)
            hold(step, text.encode(), same, f"step {number} of {example.name}")


def test_four_examples_are_told() -> None:
    """The golden conversations have the four of them."""
    assert len(EXAMPLES) == 4


def test_twenty_concurrent_calls_are_all_answered(era: Era, workflow: str) -> None:
    """Calls under way together are served one after the other, and each gets its own answer."""
    steps = [f"step-{number}" for number in range(20)]
    calls = [("save_checkpoint", {"workflow_id": workflow, "step_id": s, "state_data": {"step": s}}) for s in steps]
    saved = era.session.call_at_once(calls)
    assert [result.structured_content["data"]["step_id"] for result in saved] == steps
    calls = [("get_checkpoint", {"workflow_id": workflow, "step_id": step}) for step in steps]
    got = era.session.call_at_once(calls)
    assert [result.structured_content["data"]["state_data"] for result in got] == [{"step": step} for step in steps]


def test_an_unknown_tool_is_an_error_of_the_protocol(era: Era) -> None:
    """-32602, as the protocol asks for, with the name that is unknown."""
    with pytest.raises(MCPError, match="no_such_tool") as caught:
        era.session.call("no_such_tool", {})
    assert caught.value.error.code == INVALID_PARAMS


def test_a_refusal_is_a_result_that_the_agent_can_read(era: Era, key: dict[str, str]) -> None:
    """A field that is missing, one that is unknown, and the rules across fields are INVALID_ARG in the envelope."""
    assert era.session.ask("save", key)["code"] == "INVALID_ARG"
    assert era.session.ask("get", {**key, "tennant_id": "x"})["code"] == "INVALID_ARG"
    assert era.session.ask("delete", {**key, "all_steps": True})["code"] == "INVALID_ARG"


def test_the_tool_decides_what_is_done(era: Era, key: dict[str, str]) -> None:
    """An `action` among the arguments does not turn a read into a deletion."""
    era.session.ask("save", {**key, "state_data": {}})
    assert era.session.ask("get", {**key, "action": "delete"})["code"] == "INVALID_ARG"
    assert era.session.ask("get", key)["data"]["found"]


def test_rebuild_and_verify_tell_how_far_they_are(era: Era, workflow: str) -> None:
    """Who asks for progress gets it, growing, the last one with the total."""
    era.session.ask("workflows", {})
    era.spot.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data)"
        " SELECT %s, 'step-' || n, %s, '{}' FROM generate_series(1, 2500) n",
        (workflow, workflow),
    )
    for action in ("rebuild", "verify"):
        notes, note = noted()
        answer = era.session.ask(action, {"workflow_id": workflow, "tenant_id": workflow}, progress_callback=note)
        assert answer["success"]
        until(partial(_ended, notes), "the last notification came")
        done = [each[0] for each in notes]
        assert done == sorted(set(done))
        assert set(done) <= {1000.0, 2000.0, 2500.0}
        assert all(total is None for _, total in notes[:-1])


def _ended(notes: list[Progress]) -> bool:
    return notes[-1:] == [(2500.0, 2500.0)]


def test_two_sides_of_a_size_that_fills_pipes(era: Era, key: dict[str, str]) -> None:
    """A state of a megabyte goes in and comes out, and the next call is served."""
    state = {"text": "x" * 1_000_000}
    assert era.session.ask("save", {**key, "state_data": state})["success"]
    assert era.session.ask("get", key)["data"]["state_data"] == state
    assert era.session.ask("healthcheck", {})["success"]
