"""A view as a person at a terminal sees it, and a bar for what takes long. Only here rich is imported."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table as Grid
from rich.text import Text

from checkpoint.cli.view import BAD, GOOD, QUIET, Blocks, Fact, Facts, Prose, State, Table, Toned, plain, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from checkpoint.cli.view import Cell, Part, View
    from checkpoint.progress import Progress as Told

STYLES = {GOOD: "green", BAD: "bold red", QUIET: "dim"}
COLOURED_CHARACTERS = 100_000
INDENT = 2


def show(view: View) -> None:
    """Prints it on stdout."""
    console = Console(highlight=False, markup=False, emoji=False)
    for number, part in enumerate(view.parts):
        if number:
            console.print()
        _show(console, part)


def _show(console: Console, part: Part) -> None:
    match part:
        case Facts(facts):
            _show_facts(console, facts)
        case Table():
            _show_table(console, part)
        case Blocks(table, states):
            for number, row in enumerate(table.rows):
                if number:
                    console.rule(style="dim")
                *cells, text = zip(table.columns, row, strict=True)
                _show_facts(console, tuple(Fact(column.field, column.label, cell) for column, cell in cells))
                if text[1] is not None:
                    console.print()
                    (_show_state if states else _show_prose)(console, str(plain(text[1])))
        case Prose(_, text):
            _show_prose(console, text)
        case State(text):
            _show_state(console, text)


def _show_facts(console: Console, facts: tuple[Fact, ...]) -> None:
    shown = [fact for fact in facts if plain(fact.value) is not None]
    width = max(len(fact.label) for fact in shown)
    for fact in shown:
        # The terminal breaks long values itself, so that a path or a token can be copied as one.
        console.print(Text(f"{fact.label:<{width}}  ", "dim") + _text(fact.value), soft_wrap=True)


def _show_table(console: Console, table: Table) -> None:
    grid = Grid(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="dim", border_style="dim")
    numbers = [all(isinstance(plain(row[place]), int) for row in table.rows) for place in range(len(table.columns))]
    for column, number in zip(table.columns, numbers, strict=True):
        grid.add_column(column.label, overflow="fold", justify="right" if number else "left")
    for row in table.rows[: table.most]:
        grid.add_row(*map(_text, row))
    console.print(grid)
    if table.most is not None and len(table.rows) > table.most:
        console.print(Text(f"the first {table.most} of {len(table.rows)} that were listed", "dim"))


def _show_state(console: Console, text: str) -> None:
    shown = Text(visible(msgspec.json.format(text.encode(), indent=INDENT).decode(), keep="\n"))
    if len(shown) <= COLOURED_CHARACTERS:
        JSONHighlighter().highlight(shown)
    console.print(shown, soft_wrap=True)


def _show_prose(console: Console, text: str) -> None:
    for line in text.splitlines():
        console.print(Text("| ", "dim") + Text(visible(line)), soft_wrap=True)


def _text(cell: Cell) -> Text:
    style = ""
    if isinstance(cell, Toned):
        style = STYLES[cell.tone] if cell.tone else ""
        cell = cell.value if cell.word is None else cell.word
    match cell:
        case None:
            return Text("")
        case bool(value):
            return Text("yes" if value else "no", style)
        case datetime() as moment:
            return Text(f"{moment:%Y-%m-%d %H:%M:%S} {moment.tzname()}", style)
        case value:
            return Text(visible(str(value)), style)


@contextmanager
def bar() -> Iterator[Told]:
    """What a long action tells of itself drawn on stderr, and wiped off at the end."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} rows"),
        TimeElapsedColumn(),
    )
    progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
    tasks: dict[str, TaskID] = {}

    def tell(action: str, done: int, total: int | None) -> None:
        if action not in tasks:
            progress.start()
            tasks[action] = progress.add_task(action, total=None)
        progress.update(tasks[action], completed=done, total=total)

    try:
        yield tell
    finally:
        progress.stop()
