"""How values that psycopg would parse, copy or take apart travel as the bytes they are."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import msgspec
import psycopg
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection
    from psycopg.abc import Buffer

_JSON, _TEXT = psycopg.adapters.types["json"], psycopg.adapters.types["text"]
_length = struct.Struct("!i").pack


class StateText(msgspec.Struct, frozen=True):
    """JSON text on its way into a statement, as it is."""

    text: bytes


class TextArray(msgspec.Struct, frozen=True):
    """An array of UTF-8 texts; None stands for NULL."""

    items: Sequence[bytes | None]


class JsonArray(msgspec.Struct, frozen=True):
    """An array of JSON texts, each as it is."""

    items: Sequence[bytes]


class _StateDumper(Dumper):
    oid = _JSON.oid

    def dump(self, obj: StateText) -> Buffer:
        return obj.text


class _ArrayDumper(Dumper):
    """Writes PostgreSQL's binary form of a one-dimensional array in one go: a batch holds hundreds of items."""

    format = Format.BINARY
    element_oid: int

    def dump(self, obj: TextArray | JsonArray) -> Buffer:
        parts = [struct.pack("!iiIii", 1, None in obj.items, self.element_oid, len(obj.items), 1)]
        for item in obj.items:
            if item is None:
                parts.append(b"\xff\xff\xff\xff")
            else:
                parts += (_length(len(item)), item)
        return b"".join(parts)


class _TextArrayDumper(_ArrayDumper):
    oid = _TEXT.array_oid
    element_oid = _TEXT.oid


class _JsonArrayDumper(_ArrayDumper):
    oid = _JSON.array_oid
    element_oid = _JSON.oid


class _StateLoader(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return bytes(data)


def adapt(connection: Connection[Any]) -> None:
    """Teaches the connection these types; JSON comes back as text, never parsed."""
    connection.adapters.register_dumper(StateText, _StateDumper)
    connection.adapters.register_dumper(TextArray, _TextArrayDumper)
    connection.adapters.register_dumper(JsonArray, _JsonArrayDumper)
    connection.adapters.register_loader("json", _StateLoader)
