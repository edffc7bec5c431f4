"""The start of the command line: `checkpoint`, or `python -m checkpoint`."""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from checkpoint.cli import display, exit_status
from checkpoint.cli.confirmation import NobodyToAsk, NotMeant, ask_before
from checkpoint.cli.parser import Words
from checkpoint.cli.session import Session
from checkpoint.errors import CheckpointError, SettingsError
from checkpoint.results import WithState

if TYPE_CHECKING:
    from checkpoint.cli.session import Answer


def main() -> int:
    """Carries out one command; its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # whatever the locale cannot write
    try:
        status = _serve(Words(sys.argv[1:]))
        sys.stdout.flush()
    except SettingsError as error:
        display.complain(str(error))
        return exit_status.USAGE
    except KeyboardInterrupt:
        display.complain("interrupted; what was under way may have been done")
        return exit_status.INTERRUPTED
    except BrokenPipeError:  # whoever reads stdout has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exit_status.FINE
    return status


def _serve(words: Words) -> int:
    session = Session(os.environ)
    try:
        return _carry_out(session, words)
    finally:
        session.close()


def _carry_out(session: Session, words: Words) -> int:
    command = words.command
    try:
        answer: Answer[Any] | None = ask_before(session, words)
    except NobodyToAsk:
        display.complain(f"{command.name} destroys, and there is no terminal to ask at: --yes says that it is meant")
        return exit_status.USAGE
    except NotMeant:
        display.complain("nothing was deleted")
        return exit_status.NOT_SO
    if answer is None:
        with display.watching(drawn=not (words.json or words.raw)) as told:
            answer = session.ask(command.action, words.fields, command.kind, told)
    return _tell(words, answer)


def _tell(words: Words, answer: Answer[Any]) -> int:
    line, result = answer
    if words.json:
        _write(line)
    elif isinstance(result, CheckpointError):
        display.complain(f"{result.code}: {result.message}")
    elif words.raw and isinstance(result, WithState) and result.state_text is not None:
        _write(result.state_text.encode() + b"\n")
    else:
        display.show(words.command.view(result))
    return exit_status.of_code(result.code) if isinstance(result, CheckpointError) else exit_status.of_result(result)


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
