"""A view as plain text for a pipe or a file: a line a row, tabs between values, the contract's names as heads."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from checkpoint.cli.view import Blocks, Facts, Prose, State, Table, plain, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checkpoint.cli.view import Cell, Part, View


def lines(view: View) -> Iterator[str]:
    """The lines, without line ends. No value can break one: tabs and line breaks in values are escaped."""
    for part in view.parts:
        yield from _lines(part)


def _lines(part: Part) -> Iterator[str]:
    match part:
        case Facts(facts):
            for fact in facts:
                if plain(fact.value) is not None:
                    yield f"{fact.field}\t{_text(fact.value)}"
        case Blocks(table, _) | (Table() as table):
            yield "\t".join(column.field for column in table.columns)
            for row in table.rows:
                yield "\t".join(map(_text, row))
        case Prose(field, text):
            yield f"{field}\t{visible(text)}"
        case State(text):
            yield f"state_data\t{visible(text)}"


def _text(cell: Cell) -> str:
    match plain(cell):
        case None:
            return ""
        case bool(value):
            return "true" if value else "false"
        case datetime() as moment:
            return moment.isoformat(timespec="microseconds")
        case value:
            return visible(str(value))
