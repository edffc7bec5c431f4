"""How values that psycopg would parse, copy or take apart travel as the bytes they are."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import psycopg
from psycopg.adapt import Dumper
from psycopg.types.string import ByteaBinaryLoader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection
    from psycopg.abc import Buffer

_JSON, _TEXT = psycopg.adapters.types["json"], psycopg.adapters.types["text"]
_length = struct.Struct("!i").pack


class StateText(msgspec.Struct, frozen=True):
    """JSON text on its way into a statement, as it is."""

    text: bytes


class _Array(msgspec.Struct, frozen=True):
    """An array of values whose binary form is their text; None stands for NULL."""

    element_oid: ClassVar[int]
    items: Sequence[bytes | None]

    def binary(self) -> bytes:
        """PostgreSQL's binary form of a one-dimensional array, made in one go: a batch holds hundreds of items."""
        parts = [struct.pack("!iiIii", 1, None in self.items, self.element_oid, len(self.items), 1)]
        for item in self.items:
            if item is None:
                parts.append(b"\xff\xff\xff\xff")
            else:
                parts += (_length(len(item)), item)
        return b"".join(parts)


class TextArray(_Array, frozen=True):
    """An array of UTF-8 texts."""

    element_oid: ClassVar[int] = _TEXT.oid


class JsonArray(_Array, frozen=True):
    """An array of JSON texts, each as it is."""

    element_oid: ClassVar[int] = _JSON.oid


class _StateDumper(Dumper):
    oid = _JSON.oid

    def dump(self, obj: StateText) -> Buffer:
        return obj.text


def adapt(connection: Connection[Any]) -> None:
    """Teaches the connection these types; JSON comes back as text, never parsed."""
    connection.adapters.register_dumper(StateText, _StateDumper)
    connection.adapters.register_loader("json", ByteaBinaryLoader)
