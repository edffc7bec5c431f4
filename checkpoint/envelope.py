"""One line in, one line out: the only place that knows the JSON of requests and answers (contract, sections 1 and 2).

`state_data` is never parsed into objects: it travels as the bytes that were sent, because every parser loses something
(integers over 64 bits, 1.0 against 1, the order and the repetition of keys).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import orjson

from checkpoint import clock
from checkpoint.errors import CheckpointError
from checkpoint.record import Instant

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import tzinfo

# Fields whose value stays text. Of the rest only the small value is decoded.
TEXT_FIELDS = ("state_data", "input")

ONE_OBJECT = "send one JSON object a line"
TOO_DEEP = "the JSON is nested too deeply; use fewer levels"

_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode
_key = re.compile(rb'[ \t\r\n]*"((?:[^"\\]|\\.)*)"[ \t\r\n]*:[ \t\r\n]*', re.DOTALL).match
_after_value = re.compile(rb"[ \t\r\n]*([,}])").match
_LINE_FEED, _CARRIAGE_RETURN = 10, 13  # a search for a number is four times as fast as one for a byte string
_line_breaks = bytes.maketrans(b"\r\n", b"  ")

# What stands in for a text field while the request is validated: a value of the same JSON type.
_SAMPLES: dict[int, object] = {
    ord("{"): {},
    ord("["): [],
    ord('"'): "",
    ord("t"): True,
    ord("f"): False,
    ord("n"): None,
}


class Request(msgspec.Struct):
    """A request line taken apart: `fields` hold decoded values, `texts` the JSON text of the fields that stay text.

    In `fields` a text field is represented by an empty value of its JSON type.
    """

    fields: dict[str, Any]
    texts: dict[str, bytes]


class _Usual(msgspec.Struct, forbid_unknown_fields=True):
    action: str
    workflow_id: str
    step_id: str
    tenant_id: str | None = None
    state_data: msgspec.Raw = msgspec.Raw()


_usual_object = msgspec.json.Decoder(_Usual).decode
_USUAL_BYTES = len(b'{"action":"","workflow_id":"","step_id":""}')
_TENANT_BYTES = len(b',"tenant_id":""')
_STATE_BYTES = len(b',"state_data":')


def decode(line: bytes) -> Request:
    """The request on `line` (without its line end). Raises INVALID_JSON (contract, section 1)."""
    if not line.isascii():
        try:
            str(line, "utf-8")
        except UnicodeDecodeError as error:
            raise _invalid(f"the line is not valid UTF-8 (byte {error.start}); {ONE_OBJECT}") from None
    return _usual(line) or _any(line)


def _usual(line: bytes) -> Request | None:
    """The request on a line of the usual fields, each once, with no space between them: then the parts add up to it."""
    try:
        given = _usual_object(line)
    except (msgspec.MsgspecError, RecursionError):
        return None
    fields: dict[str, Any] = {"action": given.action, "workflow_id": given.workflow_id, "step_id": given.step_id}
    size = _USUAL_BYTES
    if given.tenant_id is not None:
        fields["tenant_id"] = given.tenant_id
        size += _TENANT_BYTES
    for text in fields.values():
        size += len(text) if text.isascii() else len(text.encode())
    texts: dict[str, bytes] = {}
    state = bytes(given.state_data)
    if state:
        texts["state_data"] = state
        fields["state_data"] = _SAMPLES.get(state[0], 0)
        size += _STATE_BYTES + len(state)
    return Request(fields, texts) if size == len(line) else None


def _any(line: bytes) -> Request:
    try:
        raws = _object(line)
    except RecursionError:
        raise _invalid(TOO_DEEP) from None
    except msgspec.ValidationError:
        raise _invalid(f"the line is JSON, but no object; {ONE_OBJECT}") from None
    except msgspec.DecodeError as error:
        raise _invalid(f"the line is not valid JSON ({error}); {ONE_OBJECT}") from None
    fields: dict[str, Any] = {}
    texts: dict[str, bytes] = {}
    size = 1
    for name, raw in raws.items():
        view = memoryview(raw)
        size += len(name.encode()) + 4 + len(view)
        if name in TEXT_FIELDS:
            texts[name] = bytes(view)
            fields[name] = _SAMPLES.get(view[0], 0)
        else:
            fields[name] = _decode_value(raw)
    # Without white space, escapes in keys and repeated keys the parts add up to the line, as above; else look closer.
    if size != len(line) and (name_twice := _repeated_key(line, raws)) is not None:
        raise _invalid(f"the key {name_twice} is given twice; give it once")
    return Request(fields, texts)


def _invalid(what: str) -> CheckpointError:
    return CheckpointError("INVALID_JSON", what)


def _decode_value(raw: msgspec.Raw) -> object:
    try:
        return _value(raw)
    except RecursionError:
        raise _invalid(TOO_DEEP) from None
    except (msgspec.DecodeError, ValueError):
        return float("inf")  # valid JSON by now, so a number beyond what Python takes


def _repeated_key(line: bytes, raws: dict[str, msgspec.Raw]) -> str | None:
    """The first top-level key that is given twice, quoted. The parser keeps the last of them without a word."""
    position = line.index(b"{") + 1
    seen = set()
    while (found := _key(line, position)) is not None:
        key = found[1]
        name = str(key, "utf-8") if b"\\" not in key else msgspec.json.decode(b'"' + key + b'"', type=str)
        if name in seen:
            return ascii(name[:64])
        seen.add(name)
        value = bytes(raws[name])
        position = found.end()
        end = _after_value(line, position + len(value)) if line.startswith(value, position) else None
        if end is None:  # the value that was kept stands elsewhere: a later one of the same key
            return ascii(name[:64])
        position = end.end()
    return None


class Encoder:
    """Writes answers; times in one zone (contract, section 2)."""

    def __init__(self, timezone: str = "UTC") -> None:
        self._zone: tzinfo | None = None
        if timezone != "UTC":
            from zoneinfo import ZoneInfo

            self._zone = ZoneInfo(timezone)
        self._default: Callable[[Any], Any] = self._represent

    def success(self, data: dict[str, Any]) -> bytes:
        """The line of a success, its line end included."""
        answer = {"success": True, "data": data, "error": None, "code": None}
        return orjson.dumps(answer, default=self._default, option=orjson.OPT_APPEND_NEWLINE)

    def failure(self, error: CheckpointError) -> bytes:
        """The line of a failure, its line end included."""
        answer = {"success": False, "data": None, "error": error.message, "code": error.code}
        return orjson.dumps(answer, option=orjson.OPT_APPEND_NEWLINE)

    def _represent(self, value: object) -> object:
        if type(value) is Instant:
            return clock.iso(value.micros, self._zone)
        if type(value) is bytes:
            return orjson.Fragment(one_line(value))
        raise TypeError(f"{type(value).__name__} has no JSON form")


def one_line(text: bytes) -> bytes:
    """The same JSON without line breaks. In valid JSON they stand only between tokens, so a space serves as well."""
    if _LINE_FEED in text or _CARRIAGE_RETURN in text:
        return text.translate(_line_breaks)
    return text
