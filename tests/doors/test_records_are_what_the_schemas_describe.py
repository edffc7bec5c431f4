"""The records that the Python door returns and the response schemas know the same fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec
import pytest

from checkpoint import CheckpointManager, results
from checkpoint.actions import NAMES
from tests.support.descriptions import schema

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.parametrize("action", NAMES)
def test_a_record_has_the_fields_of_the_answer(action: str) -> None:
    """At every depth, exactly what the response schema of the action describes."""
    record = get_type_hints(getattr(CheckpointManager, action))["return"]
    _compare(schema(f"{action}.response.json")["$defs"]["success"]["properties"]["data"], record, action)


def _compare(described: dict[str, Any], record: type[results.Result], where: str) -> None:
    properties: dict[str, Any] = {}
    for branch in described.get("oneOf", [described]):
        properties |= branch["properties"]
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(record)}
    assert set(fields) == set(properties), where
    for name, each in properties.items():
        inner = each.get("items", each)
        if {"properties", "oneOf"} & set(inner):
            (nested,) = _records(fields[name])
            _compare(inner, nested, f"{where}.{name}")


def _records(kind: Any) -> Iterator[type[results.Result]]:
    if isinstance(kind, type) and issubclass(kind, results.Result):
        yield kind
    for argument in get_args(kind):
        yield from _records(argument)
