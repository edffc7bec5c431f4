"""What a host and its agent are told of the tools: held by a golden file, and within what every host takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint.actions import NAMES
from checkpoint.mcp.tools import BY_NAME, TOOLS
from tests.support.descriptions import SKILL_JSON, schema

if TYPE_CHECKING:
    from tests.doors.conftest import Era

GOLDEN = Path(__file__).with_name("tools.golden.json")
LISTED: list[dict[str, Any]] = json.loads(GOLDEN.read_text(encoding="utf-8"))
TAKEN_EVERYWHERE = {"type", "description", "minLength", "maxLength", "minimum", "maximum", "default"}
SOURCE_TOOLS = {
    "save_checkpoint",
    "get_checkpoint",
    "list_checkpoints",
    "cache_to_sqlite",
    "get_cached_state",
    "rebuild_sqlite_cache",
    "verify_checkpoint_integrity",
    "healthcheck",
}
each_tool = pytest.mark.parametrize("tool", LISTED, ids=lambda tool: tool["name"])


def test_the_listing_is_the_golden_one(era: Era) -> None:
    """tools/list answers what tools.golden.json holds, in both eras; tests/doors/listing.py writes that file anew."""
    assert era.session.listing() == LISTED


def test_every_action_is_one_tool() -> None:
    """No action is left out, none has two tools."""
    assert sorted(tool.action for tool in TOOLS) == sorted(NAMES)
    assert len(BY_NAME) == len(TOOLS)
    assert set(BY_NAME) >= SOURCE_TOOLS


@each_tool
def test_a_schema_uses_only_what_every_host_takes(tool: dict[str, Any]) -> None:
    """One type for each property, no reference, no rule across properties, numbers that a double holds."""
    assert set(tool["inputSchema"]) <= {"type", "properties", "required", "additionalProperties"}
    assert tool["inputSchema"]["type"] == "object"
    for described in map(dict, tool["inputSchema"]["properties"].values()):
        if described["type"] == "object":
            assert (described.pop("properties"), described.pop("additionalProperties")) == ({}, True)
        assert set(described) <= TAKEN_EVERYWHERE
        assert described["type"] in {"string", "integer", "boolean", "object"}
        assert described["description"]
        assert described.get("maximum", 0) <= 2**53


@each_tool
def test_a_tool_takes_the_fields_of_its_action(tool: dict[str, Any]) -> None:
    """The same properties and the same required ones, without `action`, which the tool's name stands for."""
    request = schema(f"{BY_NAME[tool['name']].action}.request.json")
    assert set(tool["inputSchema"]["properties"]) == set(request["properties"]) - {"action"}
    assert set(tool["inputSchema"].get("required", [])) == set(request["required"]) - {"action"}


@each_tool
def test_all_four_hints_are_given_and_true(tool: dict[str, Any]) -> None:
    """What writes is never called a read; what deletes is destructive; nothing here reaches an open world."""
    hints = tool["annotations"]
    assert {name for name in hints if name.endswith("Hint")} == {
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    }
    (action,) = (each for each in SKILL_JSON["actions"] if each["name"] == BY_NAME[tool["name"]].action)
    assert not (hints["readOnlyHint"] and not action["read_only"])
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])
    assert hints["destructiveHint"] or not action["destructive"]
    assert hints["openWorldHint"] is False
