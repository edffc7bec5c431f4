"""Requests against the schemas in `schemas/`; a refusal names the field and says what to do (contract, section 2).

A Rust validator accepts (about a microsecond). Only a refusal imports `jsonschema`, which says what is wrong.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable

_HERE = os.path.dirname(os.path.abspath(__file__))
# An installed wheel carries the schemas inside the package; in a checkout they lie beside it.
SCHEMAS_DIR = os.path.join(
    _HERE if os.path.isdir(os.path.join(_HERE, "schemas")) else os.path.dirname(_HERE), "schemas"
)

DOCUMENTED_FIELDS = frozenset(("action", "workflow_id", "step_id", "tenant_id", "state_data"))
LOOKED_AT = 64  # fields, and characters of a name, at most, to tell what was perhaps meant
_IDS = ("workflow_id", "step_id", "tenant_id")
_ID_PATTERN = "must hold something besides white space and no control characters"

_TYPE_NAMES = {
    "object": "a JSON object",
    "string": "a string",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "number": "a number",
}


def load_schema(name: str) -> dict[str, Any]:
    """The schema file `name`, such as "save.request.json", parsed."""
    with open(os.path.join(SCHEMAS_DIR, name), "rb") as file:
        schema: dict[str, Any] = msgspec.json.decode(file.read())
    return schema


class RequestValidator:
    """Holds the requests of one action to its schema."""

    def __init__(self, action: str) -> None:
        self._schema = load_schema(f"{action}.request.json")
        self._ignored = DOCUMENTED_FIELDS - self._schema["properties"].keys()
        self._is_valid = _compile(self._schema)
        self.takes_tenant = "tenant_id" in self._schema["properties"]

    def arguments(self, fields: dict[str, Any]) -> dict[str, Any]:
        """The arguments among `fields`: those given, not null, of use to the action. Raises INVALID_ARG."""
        given = {name: value for name, value in fields.items() if value is not None and name not in self._ignored}
        if not self._is_valid(given):
            raise CheckpointError("INVALID_ARG", explain(self._schema, given))
        for name in _IDS:
            if given.get(name) == "":  # the schema lets it through only where it means absent
                del given[name]
        return given


def _compile(schema: dict[str, Any]) -> Callable[[Any], bool]:
    import jsonschema_rs

    # The standard engine matches in linear time, however long the string is.
    validator = jsonschema_rs.Draft202012Validator(schema, pattern_options=jsonschema_rs.RegexOptions())
    return validator.is_valid


def explain(schema: dict[str, Any], instance: dict[str, Any]) -> str:
    """One sentence on the most telling breach; it never repeats a value of the request."""
    import re

    from jsonschema import Draft202012Validator, ValidationError, exceptions, validators

    def pattern(_validator: object, wanted: str, value: object, _schema: object) -> Any:
        # ECMA's $ is the very end; Python's also stands before a last line feed.
        if isinstance(value, str) and re.search(wanted.replace("$", r"\Z"), value) is None:
            yield ValidationError("does not match")

    validator = validators.extend(Draft202012Validator, {"pattern": pattern})(schema)  # type: ignore[no-untyped-call]
    error = exceptions.best_match(validator.iter_errors(instance))
    if error is None:
        return "the request does not fit the schema of its action"
    return _sentence(schema, instance, error)


def _sentence(schema: dict[str, Any], instance: dict[str, Any], error: Any) -> str:
    field = ".".join(str(part) for part in error.absolute_path)
    rule, value = error.validator, error.validator_value
    if "$comment" in schema and {"then", "else"}.intersection(error.absolute_schema_path):
        return f"{schema['$comment']}{_stranger(schema, instance, '')}"
    if rule == "required":
        missing = next(name for name in value if name not in error.instance)
        return f"{missing} is missing{_stranger(schema, instance, missing)}: {_description(schema, missing)}"
    if rule == "additionalProperties":
        unknown = next(name for name in sorted(error.instance) if name not in schema["properties"])
        known = ", ".join(name for name in schema["properties"] if name != "action")
        return f"unknown field {unknown[:64]!a}; this action takes {known or 'no field'}"
    reasons: dict[str, str] = {
        "type": f"must be {_TYPE_NAMES.get(str(value), value)}",
        "minLength": "must not be empty" if value == 1 else f"must be at least {value} characters long",
        "maxLength": f"must be at most {value} characters long",
        "pattern": _ID_PATTERN if field in _IDS else "does not have the form that is asked for",
        "minimum": f"must be at least {value}",
        "maximum": f"must be at most {value}",
        "const": f"must be {msgspec.json.encode(value).decode()}",
    }
    return f"{field} {reasons.get(str(rule), 'does not fit its schema')}: {_description(schema, field)}"


def _stranger(schema: dict[str, Any], instance: dict[str, Any], missing: str) -> str:
    """In brackets the field that was perhaps meant for the missing one, if the action does not know it."""
    from difflib import SequenceMatcher
    from itertools import islice

    unknown = islice((name[:LOOKED_AT] for name in instance if name not in schema["properties"]), LOOKED_AT)
    nearest = max(unknown, key=lambda name: SequenceMatcher(None, name, missing).ratio(), default=None)
    return "" if nearest is None else f" (and {nearest!a} is no field of this action)"


def _description(schema: dict[str, Any], field: str) -> str:
    text: str = schema["properties"].get(field, {}).get("description", "see the schema of the action")
    return text
