"""What is shown, apart from how: parts that a terminal draws one way and a pipe gets another way."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

GOOD, BAD, QUIET = "good", "bad", "quiet"
Value = str | int | float | bool | datetime | None


class Toned(NamedTuple):
    """A value that a terminal shows as a word, or as good or bad news, or as beside the point."""

    value: Value
    tone: str | None
    word: str | None = None


Cell = Value | Toned


class Fact(NamedTuple):
    """One named value; `field` is the contract's name for it, `label` what a person reads."""

    field: str
    label: str
    value: Cell


class Facts(NamedTuple):
    """Values of one thing. Those that are None are not shown."""

    facts: tuple[Fact, ...]


class Column(NamedTuple):
    """A head, named like a fact."""

    field: str
    label: str


class Table(NamedTuple):
    """Rows of one kind. A terminal shows the first `most`."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    most: int | None = None


class Blocks(NamedTuple):
    """Rows that are too long for a line: a terminal shows each as facts, the last column's text or state below them."""

    table: Table
    states: bool = False


class Prose(NamedTuple):
    """A text of its own, such as a report."""

    field: str
    text: str


class State(NamedTuple):
    """A state as its JSON text."""

    text: str


Part = Facts | Table | Blocks | Prose | State


class View(NamedTuple):
    """What one answer shows. Notes are for people, and go to stderr."""

    parts: tuple[Part, ...]
    notes: tuple[str, ...] = ()


def plain(cell: Cell) -> Value:
    """The value of a cell, without its tone."""
    return cell.value if isinstance(cell, Toned) else cell


def visible(text: str, keep: str = "") -> str:
    r"""The text with what shows nothing, or would steer a terminal, written as `\uXXXX`, but for what is in `keep`.

    In JSON, where such characters stand inside strings only, that is the same text.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _escaped(each) for each in text)


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[place : place + 2].hex()}" for place in range(0, len(units), 2))
