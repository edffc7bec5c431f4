"""The golden conversations, each through one real runner process (contract, sections 2 to 4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.golden import Conversation, conversations
from tests.support.responses import SCHEMAS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

CONVERSATIONS = conversations()
PATIENT_WITH_THE_CACHE = {"CHECKPOINT_CACHE_WAIT_MS": "10000"}


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "all at once"])
@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda conversation: conversation.name)
def test_the_answers_are_the_golden_ones(
    conversation: Conversation, start_worker: StartWorker, folder: Path, at_once: bool
) -> None:
    """Every response is the expected one, whether the caller waits for each answer or sends its requests ahead."""

    def start(environment: Mapping[str, str | None]) -> Worker:
        return start_worker({**PATIENT_WITH_THE_CACHE, **environment})

    conversation.replay(start, folder, at_once=at_once)


def test_every_action_has_a_golden_success() -> None:
    """Each action that has a schema is answered with success in some conversation."""
    actions = {path.name.removesuffix(".request.json") for path in SCHEMAS.glob("*.request.json")}
    answered = {_action(step) for step in _exchanges() if step["expect"]["success"]}
    assert answered == actions


def _exchanges() -> list[dict[str, Any]]:
    return [step for conversation in CONVERSATIONS for step in conversation.steps if "send" in step]


def _action(step: Mapping[str, Any]) -> str:
    action: str = json.loads(step["send"])["action"]
    return action
