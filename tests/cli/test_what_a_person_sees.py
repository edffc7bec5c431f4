"""On a terminal: tables within 80 columns, a bar for what takes long, a question before something is destroyed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from checkpoint.cli.commands import COMMANDS
from checkpoint.cli.parser import Words
from tests.support.command_line import COLUMNS, unstyled

if TYPE_CHECKING:
    from pathlib import Path

    from checkpoint.cli.commands import Command
    from tests.cli.conftest import Key
    from tests.support.command_line import CommandLine
    from tests.support.place import Place

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")


def lines(screen: str) -> list[str]:
    """The lines of a screen, of which none may be wider than it."""
    found = unstyled(screen).split("\n")
    assert max(map(len, found)) <= COLUMNS, found
    return [line.rstrip() for line in found]


def test_a_table_holds_every_id_to_its_end(run: CommandLine, ids: Key) -> None:
    """An id that is too long for its column goes on in the next line; nothing is cut off."""
    step = "a step with a name " + "x" * 100
    run("save", ids.workflow, step, "{}")
    screen = run.at_terminal("list", ids.workflow)
    assert screen.status == 0
    head, _, *rows = lines(screen.out)
    assert head.split() == ["step", "revision", "saved", "tenant"]
    assert "".join(row[:40].split("  ")[0] for row in rows).replace(" ", "") == step.replace(" ", "")


def test_ids_are_not_taken_for_markup(run: CommandLine, ids: Key) -> None:
    """Square brackets, emoji names and numbers in ids stay what they are."""
    run("save", ids.workflow, "[red]no[/red] :smile: [/]", "{}")
    assert "[red]no[/red] :smile: [/]" in unstyled(run.at_terminal("list", ids.workflow).out)


def test_a_state_is_laid_out_and_keeps_its_spelling(run: CommandLine, ids: Key) -> None:
    """Indented and coloured, with every digit as it was saved; NO_COLOR takes the colours away and nothing else."""
    run("save", *ids, '{"big":18446744073709551616,"f":1.0,"list":[1e2]}')
    screen = run.at_terminal("get", *ids)
    laid_out = '{\n  "big": 18446744073709551616,\n  "f": 1.0,\n  "list": [\n    1e2\n  ]\n}\n'
    assert laid_out in unstyled(screen.out)
    assert COLOUR.search(screen.out)
    plain = run.at_terminal("get", *ids, NO_COLOR="1")
    assert laid_out in unstyled(plain.out)
    assert not COLOUR.search(plain.out)


def test_a_verify_shows_the_first_differences_and_where_all_are(run: CommandLine, ids: Key, place: Place) -> None:
    """Twenty of them, how many there are, and the page; while it compares there is a bar, which is wiped off."""
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)"
        " SELECT %s, 'step ' || n, '{}' FROM generate_series(1, 1500) AS n",
        (ids.workflow,),
    )
    screen = run.at_terminal("verify", "--workflow", ids.workflow)
    assert screen.status == 1
    text = unstyled(screen.out)
    assert "verdict        1500 differences" in text
    assert re.search(r"page +/.*reports/verify-", text)
    assert text.count("pg_only      ") == 20
    assert "the first 20 of 1000" in text
    assert re.search(r"verify ━+ 1,\d00 rows", text)


def test_a_delete_is_asked_about(run: CommandLine, ids: Key) -> None:
    """Anything but yes leaves the checkpoint; yes deletes it; the question says what would go."""
    run("save", *ids, "{}")
    for keys, status, left in (("no\n", 1, 0), ("\n", 1, 0), ("y\n", 0, 1)):
        screen = run.at_terminal("delete", *ids, keys=keys)
        assert f"Delete {ids.step} of {ids.workflow} (tenant default) for good? [y/N]" in screen.out
        assert (screen.status, run("get", *ids).status) == (status, left)


def test_a_prune_tells_how_many_before_it_asks(run: CommandLine, ids: Key, tenant: str, place: Place) -> None:
    """The number is counted first; where nothing is that old, nobody is asked."""
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data, tenant_id, updated_at)"
        " SELECT %s, 'step ' || n, '{}', %s, now() - interval '40 days' FROM generate_series(1, 3) AS n",
        (ids.workflow, tenant),
    )
    words = ("prune", "--tenant", tenant, "--older-than")
    nothing = run.at_terminal(*words, "6w")
    assert (nothing.status, "[y/N]" in nothing.out) == (0, False)
    refused = run.at_terminal(*words, "30d", keys="n\n")
    assert (refused.status, f"Delete 3 checkpoints (tenant {tenant}) for good?" in refused.out) == (1, True)
    agreed = run.at_terminal(*words, "30d", keys="yes\n")
    assert (agreed.status, "deleted  3" in unstyled(agreed.out)) == (0, True)


@pytest.mark.parametrize("words", [["delete", "wf", "s"], ["prune", "--older-than", "1d"]], ids=["delete", "prune"])
def test_where_nobody_can_be_asked_nothing_is_destroyed(run_offline: CommandLine, words: list[str]) -> None:
    """Without a terminal and without --yes it is refused, before any request."""
    done = run_offline(*words)
    assert (done.status, done.out, "--yes" in done.err) == (2, "", True)


def test_what_waits_is_shown_with_its_report(run: CommandLine, ids: Key) -> None:
    """The report to its last line, and a token in one piece, so that it can be copied."""
    run("request-approval", *ids, "--input", "1", "--report", "# Orders\n\n[bold]all fine[/bold]\x1b[31m")
    screen = run.at_terminal("pending")
    assert "| # Orders\n|\n| [bold]all fine[/bold]\\u001b[31m\n" in re.sub(" +\n", "\n", unstyled(screen.out))
    assert re.search(r"token +[0-9a-f]{64}\n", unstyled(screen.out))


def test_without_rich_it_is_plain_and_says_what_is_missing(run: CommandLine, ids: Key, tmp_path: Path) -> None:
    """The command does its work all the same; one line names the package and how to get it; --json does without."""
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text("raise ImportError('not installed')\n", encoding="utf-8")
    without = {"PYTHONPATH": f"{tmp_path}:{run.package}"}
    screen = run.at_terminal("save", *ids, "{}", **without)
    assert (screen.status, "revision\t1" in screen.out.expandtabs(1).replace(" ", "\t")) == (0, True)
    assert re.search(r"rich: \S+ -m pip install 'rich>=14,<16'", screen.out)
    assert run.at_terminal("get", *ids, "--json", **without).out.startswith('{"success":true')


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_help_of_a_command_has_examples_and_80_columns(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every example is there as one would type it."""
    with pytest.raises(SystemExit, match="0"):
        Words([command.name, "--help"])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= COLUMNS
    assert all(f"  {example}\n" in shown for example in command.examples)


def test_the_help_lists_every_command(run_offline: CommandLine) -> None:
    """With what it is for, in 80 columns."""
    done = run_offline("--help")
    listed = done.out.split("commands:")[1].split("examples:")[0]
    assert re.findall(r"^  ([a-z-]+) {2,}\S", listed, re.MULTILINE) == [command.name for command in COMMANDS]
    assert (done.status, max(map(len, done.out.splitlines())) <= COLUMNS) == (0, True)


def test_no_word_at_all_shows_the_help(run_offline: CommandLine) -> None:
    """It is no error in the words, but nothing was done either."""
    done = run_offline()
    assert (done.status, done.out) == (2, "")
    assert "commands:" in done.err
