"""Into a pipe or a file goes plain text: a line a row, tabs between values, no colours; states come as they were saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Key
    from tests.support.command_line import CommandLine
    from tests.support.place import Place

STATE = '{"big": 18446744073709551616, "f": 1.0, "twice": 1, "twice": 2, "text": "\\u00e9 é"}'


def test_a_list_is_a_head_and_a_line_a_row(run: CommandLine, ids: Key) -> None:
    """Columns are named as in the contract; times are whole; a short COLUMNS cuts nothing."""
    long = "s" * 200
    run("save", *ids, "{}")
    run("save", ids.workflow, long, "{}")
    head, *rows = run("list", ids.workflow, COLUMNS="20").out.splitlines()
    assert head.split("\t") == ["step_id", "revision", "updated_at", "tenant_id"]
    assert [row.split("\t")[0] for row in rows] == [long, ids.step]
    assert rows[0].split("\t")[2].endswith("+00:00")


def test_a_state_from_an_argument_a_file_and_stdin_is_one_text(run: CommandLine, ids: Key, tmp_path: Path) -> None:
    """What was given comes out of `get --raw` again, digit by digit; a byte order mark of a file is none of it."""
    (tmp_path / "state.json").write_bytes(b"\xef\xbb\xbf" + STATE.encode())
    for given, stdin in ((STATE, b""), ("@state.json", b""), ("-", STATE.encode())):
        assert run("save", *ids, given, stdin=stdin).status == 0
        assert run("get", *ids, "--raw").out == STATE + "\n"
    assert run("cached-get", *ids, "--raw").out == STATE + "\n"


def test_json_is_the_line_of_the_worker(run: CommandLine, ids: Key, place: Place) -> None:
    """`--json` prints the envelope, of a success as of a failure, and the exit status is the same."""
    run("save", *ids, STATE)
    done = run("get", *ids, "--json")
    place.worker.request({"action": "get", "workflow_id": ids.workflow, "step_id": ids.step})
    assert done.out.encode() == place.worker.raw[-1] + b"\n"
    assert run("--json", "get", *ids).out == done.out
    failed = run("save", *ids, "[]", "--json")
    assert (failed.status, json.loads(failed.out)["code"], failed.err) == (2, "INVALID_ARG", "")


def test_what_could_break_a_line_or_steer_a_terminal_is_escaped(run: CommandLine, ids: Key, place: Place) -> None:
    """Control characters that another program has put into an id are shown and do nothing."""
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data) VALUES (%s, %s, %s)",
        (ids.workflow, "red\x1b[31m\tand\nmore\u202e", '{"c1": "\u009b31m"}'),
    )
    _, row = run("list", ids.workflow).out.splitlines()
    assert row.split("\t")[0] == r"red\u001b[31m\u0009and\u000amore\u202e"
    shown = run("list", ids.workflow, "--state").out
    assert r'{"c1": "\u009b31m"}' in shown


def test_an_empty_state_of_things_is_told(run: CommandLine, ids: Key, tenant: str) -> None:
    """Nothing on stdout, and on stderr one line that says so: of a workflow, of a tenant, of approvals."""
    for words in (["list", ids.workflow], ["workflows", "--tenant", tenant], ["pending", "--tenant", tenant]):
        done = run(*words)
        assert (done.status, done.out) == (0, "")
        assert done.err.count("\n") == 1
        assert done.err.startswith("no")


def test_the_first_of_all_is_told_how_to_begin(run: CommandLine) -> None:
    """Where there is no checkpoint at all, the way to save one is shown."""
    done = run("workflows", CHECKPOINT_SCHEMA="nothing_here_yet")
    assert (done.status, done.out) == (0, "")
    assert "no checkpoints yet" in done.err
    assert "checkpoint save" in done.err


def test_pages_tell_how_to_go_on(run: CommandLine, ids: Key) -> None:
    """A page that is not the last shows the cursor of the next, which gives what is left."""
    for step in "abc":
        run("save", ids.workflow, step, "{}")
    first = run("list", ids.workflow, "--limit", "2")
    cursor = first.err.split("--cursor ")[1].strip()
    second = run("list", ids.workflow, "--limit", "2", "--cursor", cursor)
    steps = [line.split("\t")[0] for done in (first, second) for line in done.out.splitlines()[1:]]
    assert (steps, second.err) == (["c", "b", "a"], "")


def test_a_reader_that_has_had_enough_is_no_error(run: CommandLine, ids: Key, place: Place) -> None:
    """`| head -1` ends the command quietly."""
    place.sql.execute(
        "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data)"
        " SELECT %s, repeat('x', 200) || n, '{}' FROM generate_series(1, 2000) AS n",
        (ids.workflow,),
    )
    done = run.piped_to("head -1", "list", ids.workflow)
    assert (done.out.count("\n"), done.err) == (1, "")


def test_an_approval_from_the_question_to_the_file(run: CommandLine, ids: Key, tmp_path: Path) -> None:
    """Asked, shown to whoever decides, approved with a token from stdin, and refused another decision."""
    (tmp_path / "in.json").write_text('{"order": 7}', encoding="utf-8")
    (tmp_path / "out.md").write_text("# Order 7\n\tfine\n", encoding="utf-8")
    asked = ("request-approval", *ids, "--input", "@in.json")
    nobody = run(*asked)
    assert (nobody.status, "status\tnone" in nobody.out, "--report" in nobody.err) == (0, True, True)
    waiting = run(*asked, "--report", "@out.md", "--output", f"{ids.workflow}.md", "--expires-in", "1d")
    token = next(line.split("\t")[1] for line in waiting.out.splitlines() if line.startswith("approval_token\t"))
    head, *rows = run("pending").out.splitlines()
    (row,) = (row.split("\t") for row in rows if row.startswith(ids.workflow))
    assert dict(zip(head.split("\t"), row, strict=True))["report"] == r"# Order 7\u000a\u0009fine\u000a"
    done = run("approve", *ids, "-", "--by", "ann", stdin=f"{token}\n".encode())
    assert (done.status, "status\tcompleted" in done.out) == (0, True)
    output = next(line.split("\t")[1] for line in done.out.splitlines() if line.startswith("output\t"))
    assert Path(output).read_text(encoding="utf-8") == "# Order 7\n\tfine\n"
    refused = run("reject", *ids, token)
    assert (refused.status, refused.err.startswith("checkpoint: ALREADY_DECIDED")) == (1, True)
