"""Lines of JSON-RPC and the SDK's messages. A tool's arguments stay the text that was sent (contract, section 2)."""

from __future__ import annotations

from typing import Any

import msgspec
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

_anything = msgspec.json.Decoder(msgspec.Raw).decode
_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_value = msgspec.json.Decoder().decode
_OBJECT_STARTS = ord("{")


class Malformed(Exception):
    """A line that is no message. `error` is what JSON-RPC answers; its id is null where the line does not tell it."""

    def __init__(self, code: int, message: str, message_id: RequestId | None = None) -> None:
        super().__init__(message)
        self.error = JSONRPCError(jsonrpc="2.0", id=message_id, error=ErrorData(code=code, message=message))


def decode(line: bytes) -> tuple[JSONRPCMessage, bytes]:
    """The message on a line, and the JSON text of its tool's arguments, `{}` where it has none. Raises Malformed.

    The message itself has empty arguments in their place: they never become Python values here, so a number keeps its
    digits, and NaN, which Python's own readers let pass, is refused.
    """
    try:
        if not line.isascii():
            str(line, "utf-8")
        raw_line = _anything(line)
        if not _is_object(raw_line):
            raise Malformed(INVALID_REQUEST, "a message is one JSON object a line, not a batch")
        parts = _object(raw_line)
    except RecursionError:
        raise Malformed(PARSE_ERROR, "the JSON is nested too deeply") from None
    except (UnicodeDecodeError, msgspec.DecodeError):
        raise Malformed(PARSE_ERROR, "the line is not valid JSON in UTF-8") from None
    arguments = b"{}"
    fields: dict[str, Any] = {}
    for name, raw in parts.items():
        if name == "params" and _is_object(raw):
            params: dict[str, Any] = {}
            fields[name] = params
            for key, part in _decoded(_object, raw).items():
                if key == "arguments" and _is_object(part):
                    params[key] = {}
                    arguments = bytes(part)
                else:
                    params[key] = _decoded(_value, part)
        else:
            fields[name] = _decoded(_value, raw)
    return _message(fields), arguments


def _is_object(raw: msgspec.Raw) -> bool:
    return memoryview(raw)[0] == _OBJECT_STARTS


def _decoded(decoder: Any, raw: msgspec.Raw) -> Any:
    try:
        return decoder(raw)
    except RecursionError:
        raise Malformed(PARSE_ERROR, "the JSON is nested too deeply") from None
    except msgspec.ValidationError:
        raise Malformed(INVALID_REQUEST, "a number is out of range") from None
    except msgspec.DecodeError:
        raise Malformed(PARSE_ERROR, "the line is not valid JSON in UTF-8") from None


def _message(fields: dict[str, Any]) -> JSONRPCMessage:
    given = fields.get("id")
    message_id = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    # The SDK takes a request with an id that none can have for a notification, and never answers it.
    if "method" in fields and "id" in fields and message_id is None:
        raise Malformed(INVALID_REQUEST, "the id of a request is a string or a whole number")
    try:
        return jsonrpc_message_adapter.validate_python(fields, by_name=False)
    except ValidationError:
        raise Malformed(INVALID_REQUEST, "the line is no JSON-RPC 2.0 message", message_id) from None


def encode(message: JSONRPCMessage) -> bytes:
    """The line of a message, its line end included.

    A tool's result says the same as text and as structured content: the one is put in the place of the other here, as
    text, so that the state in it is not read and written again.
    """
    body = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    result = body.get("result")
    if result is not None and "structuredContent" in result:
        result["structuredContent"] = msgspec.Raw(result["content"][0]["text"].encode())
    return msgspec.json.encode(body) + b"\n"
