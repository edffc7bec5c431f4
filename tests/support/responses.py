"""What every response that a test receives is held to (contract, section 2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs

if TYPE_CHECKING:
    from tests.support.reached import Reached

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"
SUFFIX = ".response.json"
KEYS = ["success", "data", "error", "code"]
CODES_WITHOUT_ACTION = frozenset({"INVALID_JSON", "REQUEST_TOO_LARGE", "UNKNOWN_ACTION"})
LONGEST_PYTHON_INTEGER = 4000


class Responses:
    """Holds each response line to its schema and the envelope, and remembers the codes that came."""

    def __init__(self, reached: Reached) -> None:
        self._reached = reached
        self._envelope = _compiled(SCHEMAS / "envelope.json")
        self._actions = {path.name.removesuffix(SUFFIX): _compiled(path) for path in sorted(SCHEMAS.glob("*" + SUFFIX))}

    def check(self, line: bytes, action: str | None) -> dict[str, Any]:
        """The response as a dict. `line` has no line break; `action` is what was asked, None where that was not JSON.

        Raises AssertionError, with the response in the message, where it is not what the schemas promise.
        """
        about = f"the response to {action}: {_shown(line)}"
        assert b"\r" not in line, f"a carriage return in {about}"
        try:
            response = json.loads(line.decode("utf-8"), parse_int=_integer)
        except ValueError as error:
            raise AssertionError(f"{error} in {about}") from None
        assert isinstance(response, dict), f"no object is {about}"
        assert list(response) == KEYS, f"other keys, or another order, in {about}"
        shape = _without_states(response)
        _hold(self._envelope, shape, about)
        if action in self._actions:
            _hold(self._actions[action], shape, about)
        else:
            assert response["code"] in CODES_WITHOUT_ACTION, f"an action that does not exist, but this is {about}"
        self._reached.add(action, response["code"])
        return response


def _compiled(path: Path) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def _hold(validator: jsonschema_rs.Draft202012Validator, shape: object, about: str) -> None:
    error = next(iter(validator.iter_errors(shape)), None)
    if error is not None:
        where = "/".join(str(part) for part in error.instance_path) or "the whole"
        raise AssertionError(f"{error.message} at {where} of {about}")


def _without_states(response: dict[str, Any]) -> dict[str, Any]:
    """The response with every state_data emptied: what is inside belongs to the caller, and may be deep or huge."""
    data = response["data"]
    if not isinstance(data, dict):
        return response
    data = dict(_without_state(data))
    if isinstance(data.get("checkpoints"), list):
        data["checkpoints"] = [_without_state(row) for row in data["checkpoints"]]
    return {**response, "data": data}


def _without_state(row: Any) -> Any:
    if isinstance(row, dict) and isinstance(row.get("state_data"), dict):
        return {**row, "state_data": {}}
    return row


def _integer(digits: str) -> int | str:
    """Python refuses to read very long integers; they stay text."""
    return int(digits) if len(digits) <= LONGEST_PYTHON_INTEGER else digits


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "backslashreplace")
    return text if len(text) <= 2000 else f"{text[:1000]} ... {text[-1000:]} ({len(line)} bytes)"
