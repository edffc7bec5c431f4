"""The schemas leave nothing open: what a request may hold, and everything that an answer will hold."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import jsonschema_rs
import pytest

from checkpoint.errors import CODES
from tests.support.descriptions import SCHEMAS, schema

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = sorted(path.name for path in SCHEMAS.glob("*.json"))
REQUESTS = [name for name in NAMES if name.endswith(".request.json")]
RESPONSES = [name for name in NAMES if name.endswith(".response.json")]
OPTIONAL_IN_ANSWERS = {"list.response.json": {"state_data"}, "verify.response.json": {"report_error"}}
FREE_OBJECTS = {"state_data", "errors"}
REQUEST_WORDS = {
    "description", "type", "const", "default", "minLength", "maxLength", "pattern", "minimum", "maximum",
}  # fmt: skip

GOOD_IDS = ["a", "wf 1", " x", "x ", "é", "e\u0301", "a\u2028b", "\u200b", "😀" * 255, "../..", "%00", "\ufeff"]
BAD_IDS = [
    " ", "\u3000", "\u2028", "\u00a0", "a\n", "\n", "a\r", "\t", "a\x00b", "\x7f", "a\x85", "\x9f", "x" * 256, "😀" * 256,
    1, True, ["a"], {}, None,
]  # fmt: skip
EMPTY_MEANS_ABSENT = {
    ("get", "tenant_id"),
    ("list", "tenant_id"),
    ("workflows", "tenant_id"),
    ("cached_get", "tenant_id"),
    ("rebuild", "tenant_id"),
    ("rebuild", "workflow_id"),
    ("verify", "tenant_id"),
    ("verify", "workflow_id"),
    ("pending", "tenant_id"),
}
ANY_JSON = {"input"}
ID_FIELDS = [
    (name.split(".")[0], field)
    for name in REQUESTS
    for field in ("workflow_id", "step_id", "tenant_id")
    if field in schema(name)["properties"]
]


def _accepts(wanted: dict[str, Any], value: object) -> bool:
    validator = jsonschema_rs.Draft202012Validator(wanted, pattern_options=jsonschema_rs.RegexOptions())
    return validator.is_valid(value)


def _objects(node: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object schema in `node` that says `type: object`, with the property it stands under."""
    if isinstance(node, dict):
        if node.get("type") == "object":
            yield name, node
        for key, value in node.items():
            if key == "properties":
                for child, inner in value.items():
                    yield from _objects(inner, child)
            else:
                yield from _objects(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from _objects(value, name)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_says_what_it_is(name: str) -> None:
    """JSON Schema 2020-12 with a title and a description, and nothing that a validator would fetch."""
    parsed = schema(name)
    jsonschema.Draft202012Validator.check_schema(parsed)
    assert parsed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert parsed["title"]
    assert parsed["description"]
    assert "$id" not in parsed
    assert all(ref.startswith("#/$defs/") for ref in re.findall(r'"\$ref": "([^"]*)"', (SCHEMAS / name).read_text()))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_schema_is_plain_enough_for_every_host(name: str) -> None:
    """Closed, each property described and of one type, no references and no alternatives inside."""
    parsed = schema(name)
    assert parsed["type"] == "object"
    assert parsed["additionalProperties"] is False
    assert set(parsed["required"]) <= set(parsed["properties"])
    assert not {"anyOf", "oneOf", "allOf", "not", "$ref", "$defs"} & set(parsed)
    for field, wanted in parsed["properties"].items():
        assert set(wanted) <= REQUEST_WORDS, field
        assert isinstance(wanted["type"], list if field in ANY_JSON else str), field
        assert wanted["description"].endswith("."), field
        if "default" in wanted:
            assert field not in parsed["required"], field
            assert wanted["description"].endswith(f" Default: {json.dumps(wanted['default'])}."), field


@pytest.mark.parametrize("name", [*RESPONSES, "envelope.json"])
def test_a_response_schema_leaves_nothing_open(name: str) -> None:
    """Every object of an answer is closed, all its keys are described, and all are required but the few named here."""
    optional = OPTIONAL_IN_ANSWERS.get(name, set())
    defs = schema(name)["$defs"]
    for under, wanted in _objects(defs):
        if "properties" not in wanted:
            assert under in FREE_OBJECTS | ({"data"} if name == "envelope.json" else set()), under
            continue
        assert wanted["additionalProperties"] is False, under
        missing = set(wanted["properties"]) - set(wanted["required"])
        assert missing <= optional, under
        assert set(wanted["required"]) <= set(wanted["properties"]), under
        assert all("description" in inner for inner in wanted["properties"].values()), under


@pytest.mark.parametrize("name", RESPONSES)
def test_a_failure_looks_the_same_whatever_was_asked(name: str) -> None:
    """Every response schema has the failure and the codes of the envelope."""
    envelope, defs = schema("envelope.json"), schema(name)["$defs"]
    assert defs["failure"] == envelope["$defs"]["failure"]
    assert defs["code"] == {"type": "string", "enum": list(CODES)}


@pytest.mark.parametrize(("action", "field"), ID_FIELDS)
def test_an_id_is_text_that_one_can_see(action: str, field: str) -> None:
    """1 to 255 code points, no control characters, not only white space; "" only where it means absent."""
    wanted = schema(f"{action}.request.json")["properties"][field]
    assert [value for value in GOOD_IDS if not _accepts(wanted, value)] == []
    assert [value for value in BAD_IDS if _accepts(wanted, value)] == []
    assert _accepts(wanted, "") == ((action, field) in EMPTY_MEANS_ABSENT)


@pytest.mark.parametrize("text", ["x" * 2_000_000 + "\n\n", " " * 2_000_000, "\u3000a" * 1_000_000 + "\x00"])
def test_an_enormous_id_is_refused_without_going_back_and_forth(text: str) -> None:
    """The pattern reads a text once, in the engine that accepts and in the one that explains a refusal."""
    wanted = schema("save.request.json")["properties"]["workflow_id"]
    assert not _accepts(wanted, text)
    assert re.search(wanted["pattern"].replace("$", r"\Z"), text) is None


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        ({}, False),
        ({"step_id": "s"}, True),
        ({"all_steps": True}, True),
        ({"all_steps": False}, False),
        ({"step_id": "s", "all_steps": False}, True),
        ({"step_id": "s", "all_steps": True}, False),
    ],
)
def test_delete_needs_exactly_one_of_a_step_and_all_steps(fields: dict[str, Any], accepted: bool) -> None:
    """A forgotten step_id never deletes a workflow, and a contradiction deletes nothing."""
    request = {"action": "delete", "workflow_id": "w", **fields}
    assert _accepts(schema("delete.request.json"), request) is accepted


@pytest.mark.parametrize(
    ("fields", "accepted"),
    [
        ({}, True),
        ({"tenant_id": "t"}, True),
        ({"tenant_id": "t", "all_tenants": False}, True),
        ({"all_tenants": True}, True),
        ({"tenant_id": "t", "all_tenants": True}, False),
        ({"older_than_sec": 0}, False),
        ({"older_than_sec": 1.5}, False),
        ({"older_than_sec": "60"}, False),
    ],
)
def test_prune_takes_one_tenant_or_all_and_a_whole_age(fields: dict[str, Any], accepted: bool) -> None:
    """A tenant named together with all tenants is a contradiction; an age is a whole number of seconds from 1."""
    request = {"action": "prune", "older_than_sec": 60, **fields}
    assert _accepts(schema("prune.request.json"), request) is accepted
