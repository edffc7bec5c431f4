"""The words of the command line, and the request that they make."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from checkpoint import __version__
from checkpoint.cli.commands import COMMANDS
from checkpoint.cli.exit_status import USAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint.cli.commands import Command

WIDTH = 78
JSON = "print the answer as the worker's JSON line"
USAGE_LINES = "checkpoint COMMAND ...\n       checkpoint COMMAND --help"
ABOUT = "Checkpoints of workflows: PostgreSQL is the authority, SQLite a cache."
LISTED = "commands:\n" + "".join(f"  {command.name:<18}{command.summary}\n" for command in COMMANDS)
CLOSING = """
examples:
  checkpoint save wf_001 step_1 '{"progress": 30}'
  checkpoint list wf_001
  checkpoint get wf_001 step_1 --raw > state.json
  checkpoint verify

DATABASE_URL says which PostgreSQL: postgresql://user:password@host/database,
or embedded: for one that is started when it is needed.

exit status: 0 it is so; 1 there is none (get, cached-get), it does not agree
(verify), it is not well (health), or it was refused; 2 wrong words or
settings; 3 the database, or no DATABASE_URL
"""


class _Parser(argparse.ArgumentParser):
    """Tells what is wrong in one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_help, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}; see {self.prog} --help\n")
        sys.exit(USAGE)


def _help(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, width=WIDTH, max_help_position=26)


class Words:
    """A command line, read: the command, the fields of its request, and what else was asked for."""

    def __init__(self, words: Sequence[str]) -> None:
        parser = _parser()
        if not words:
            parser.print_help(sys.stderr)
            sys.exit(USAGE)
        given = vars(parser.parse_args(words))
        self.command: Command = given.pop("command")
        self.json: bool = given.pop("json")
        self.yes: bool = given.pop("yes", False)
        self.raw: bool = given.pop("raw", False)
        self.fields: dict[str, object] = {name: value for name, value in given.items() if value is not None}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="checkpoint", usage=USAGE_LINES, description=ABOUT, epilog=LISTED + CLOSING)
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--json", action="store_true", help=JSON)
    commands = parser.add_subparsers(prog="checkpoint", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    names = {command.name for command in COMMANDS}
    for command in COMMANDS:
        examples = "examples:\n" + "".join(f"  {example}\n" for example in command.examples)
        under = commands.add_parser(
            command.name,
            aliases=[command.action] if command.action not in names else [],  # as other doors call it
            description=command.summary,
            epilog=examples,
        )
        command.add_arguments(under)
        under.add_argument(
            "--json",
            action="store_true",
            default=argparse.SUPPRESS,  # else it would undo the one before the command
            help=JSON,
        )
        under.set_defaults(command=command)
    return parser
