"""Requests in the words of the command line, each a process of its own."""

from __future__ import annotations

import argparse
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from checkpoint.cli.commands import COMMANDS
from checkpoint.cli.exit_status import of_code
from tests.support.command_line import CommandLine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.doors.doors import Door, Envelope
    from tests.support.responses import Responses

OF_ACTION = {command.action: command for command in COMMANDS}
JSON_FIELDS = ("state_data", "input")
SAID_BY_DEFAULT = {"list": {"include_state": True}}  # what the command line leaves out unless it is told


def words(action: str, fields: Mapping[str, Any]) -> list[str] | None:
    """The words that make this request; None where it cannot be said, since every word is text."""
    fields = {**SAID_BY_DEFAULT.get(action, {}), **fields}
    parser = argparse.ArgumentParser()
    OF_ACTION[action].add_arguments(parser)
    said = [OF_ACTION[action].name, "--json"]
    for argument in parser._actions:
        if argument.dest == "yes":
            said.append("--yes")
        if argument.dest not in fields:
            continue
        value = fields[argument.dest]
        if argument.dest in JSON_FIELDS:
            value = json.dumps(value, ensure_ascii=False)
        elif argument.nargs != 0 and argument.type is None and not isinstance(value, str):
            return None
        if not argument.option_strings:
            said.append(str(value))
        elif argument.nargs != 0:
            said.append(f"{argument.option_strings[0]}={value}")
        elif value:
            said.append(argument.option_strings[0])
    return said


@contextmanager
def command_line(settings: Mapping[str, str | None], responses: Responses, folder: Path) -> Iterator[Door]:
    """Commands with `--json`; the exit status has to be that of the code."""
    run = CommandLine(settings, folder)

    def ask(action: str, fields: Mapping[str, Any]) -> Envelope | None:
        said = words(action, fields)
        if said is None:
            return None
        done = run(*said)
        envelope = responses.check(done.out.removesuffix("\n").encode(), action)
        assert done.err == ""
        if not envelope["success"]:
            assert done.status == of_code(envelope["code"])
        return envelope

    yield ask
