"""Where what is shown goes: a view drawn on a terminal, plain into a pipe; notes and errors on stderr."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

from checkpoint import progress
from checkpoint.cli.view import visible

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from checkpoint.cli.view import View
    from checkpoint.progress import Progress

RICH = "rich>=14,<16"


def show(view: View) -> None:
    """Prints a view. Without the package rich a terminal gets it plain too, and says how to get more."""
    if sys.stdout.isatty():
        try:
            from checkpoint.cli import terminal
        except ImportError:
            note(f"tables and colours need the package rich: {sys.executable} -m pip install '{RICH}'")
        else:
            terminal.show(view)
            _notes(view)
            return
    from checkpoint.cli import plain

    for line in plain.lines(view):
        sys.stdout.write(f"{line}\n")
    _notes(view)


def watching(*, drawn: bool) -> AbstractContextManager[Progress | None]:
    """What is told of a long action: a bar, or lines where it is not to be `drawn`; nothing where nobody looks."""
    if not sys.stderr.isatty():
        return nullcontext()
    if drawn:
        try:
            from checkpoint.cli import terminal
        except ImportError:
            pass
        else:
            return terminal.bar()
    return nullcontext(progress.on_terminal())


def note(sentence: str) -> None:
    """One line for a person, on stderr."""
    sys.stderr.write(f"{visible(sentence)}\n")


def complain(sentence: str) -> None:
    """The one line of an error."""
    note(f"checkpoint: {sentence}")


def _notes(view: View) -> None:
    sys.stdout.flush()
    for sentence in view.notes:
        note(sentence)
