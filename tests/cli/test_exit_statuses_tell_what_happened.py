"""0 fine, 1 damage found, nothing found or refused, 2 words or settings, 3 the database; an error is one line with its code."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from checkpoint.cli import exit_status
from checkpoint.errors import CODES
from tests.support.process import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Key
    from tests.support.command_line import CommandLine, Done
    from tests.support.place import Place

WAITING = "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))"
A_BUG = """\
import sys

class Bug:
    def find_spec(self, name, path=None, target=None):
        if name == "checkpoint.actions.healthcheck":
            raise ZeroDivisionError("a bug of this test")

sys.meta_path.insert(0, Bug())
"""


def one_line(done: Done) -> str:
    """The one line of an error."""
    assert done.out == ""
    assert done.err.startswith("checkpoint")
    assert done.err.count("\n") == 1, done.err
    return done.err


def test_what_is_there_and_what_is_not(run: CommandLine, ids: Key) -> None:
    """A get of a checkpoint is 0, a get of none is 1 with nothing on stdout, so that a script can ask."""
    assert run("save", *ids, "{}").status == 0
    assert run("get", *ids).status == 0
    missing = run("get", ids.workflow, "other")
    assert (missing.status, missing.out) == (1, "")
    assert "no checkpoint" in missing.err


def test_damage_found_by_verify_is_1(run: CommandLine, ids: Key, place: Place) -> None:
    """A verify that finds the two sides equal is 0, one that finds a difference is 1; both show the counts."""
    run("save", *ids, "{}")
    equal = run("verify", "--workflow", ids.workflow)
    assert (equal.status, "consistent\ttrue" in equal.out.splitlines()) == (0, True)
    place.sql.execute("DELETE FROM workflow_checkpoints WHERE workflow_id = %s", (ids.workflow,))
    different = run("verify", "--workflow", ids.workflow)
    assert different.status == 1
    assert {"consistent\tfalse", "cache_only\t1", f"cache_only\t{ids.workflow}\t{ids.step}"} <= set(
        different.out.splitlines()
    )


def test_a_refusal_is_1_and_tells_its_code(run: CommandLine, ids: Key) -> None:
    """A conflict is one line with the code and the way out."""
    run("save", *ids, "{}")
    refused = run("save", *ids, "{}", "--expect", "7")
    assert (refused.status, one_line(refused)[:30]) == (1, "checkpoint: REVISION_CONFLICT:")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["save", "wf", "s", "[1]"], "INVALID_ARG: state_data"),
        (["save", "wf", "s", "{"], "INVALID_JSON: state_data is not valid JSON"),
        (["save", "wf", "s", '{}, "tenant_id": "other"'], "INVALID_JSON"),
        (["save", "wf", "s", "@no/such/file"], "no/such/file"),
        (["save", "wf"], "STEP"),
        (["list", "wf", "--limit", "many"], "--limit"),
        (["list", "wf", "--limit", "0"], "INVALID_ARG: limit"),
        (["prune", "--older-than", "30y", "--yes"], "30d"),
        (["delete", "wf", "--yes"], "INVALID_ARG: name one step"),
        (["savee", "wf"], "savee"),
        (["get", "\udcff", "s"], "INVALID_JSON"),
    ],
    ids=lambda value: " ".join(value).encode("ascii", "replace").decode() if isinstance(value, list) else "",
)
def test_wrong_words_are_2(run_offline: CommandLine, words: list[str], told: str) -> None:
    """Whatever cannot be understood is one line that names it; nothing was asked of a database."""
    done = run_offline(*words)
    assert done.status == 2
    assert told in one_line(done)


def test_wrong_settings_are_2(run_offline: CommandLine) -> None:
    """A setting that cannot be used is one line with the name of the variable."""
    done = run_offline("health", CHECKPOINT_CACHE_TTL="soon")
    assert (done.status, "CHECKPOINT_CACHE_TTL" in one_line(done)) == (2, True)


def test_a_database_that_is_not_there_is_3(run_offline: CommandLine) -> None:
    """Not configured, or away: one line with the code, and none of the log lines that a worker would write."""
    assert run_offline("list", "wf").status == 3
    away = run_offline("verify", DATABASE_URL="postgresql://me:secret@127.0.0.1:9/none")
    assert (away.status, "VERIFY_FAILED" in one_line(away), "secret" in away.err) == (3, True, False)


def test_log_lines_come_where_they_are_asked_for(run_offline: CommandLine) -> None:
    """With CHECKPOINT_LOG_LEVEL the log is written as by any worker, beside the one line."""
    done = run_offline("list", "wf", DATABASE_URL="postgresql://127.0.0.1:9/none", CHECKPOINT_LOG_LEVEL="WARNING")
    lines = done.err.splitlines()
    assert any(line.startswith("checkpoint: PG_LIST_ERROR") for line in lines)
    assert any(line.startswith("{") and json.loads(line)["level"] == "ERROR" for line in lines)


def test_health_is_0_1_or_3(run: CommandLine, run_offline: CommandLine) -> None:
    """Ok is 0, degraded 1, down 3, and which it is comes first."""
    served = run("health")  # the PostgreSQL of the tests may be one that is not durable
    assert (served.out.splitlines()[0], served.status) in [("status\tok", 0), ("status\tdegraded", 1)]
    degraded = run_offline("health")
    assert (degraded.status, degraded.out.splitlines()[0]) == (1, "status\tdegraded")
    down = run_offline("health", DATABASE_URL="postgresql://127.0.0.1:9/none")
    assert (down.status, down.out.splitlines()[0]) == (3, "status\tdown")


def test_ctrl_c_ends_a_command_that_waits(run: CommandLine, ids: Key, place: Place) -> None:
    """While a save waits for a lock that another holds, SIGINT ends it: one line, 130, and nothing was written."""
    run("save", *ids, "{}")
    with place.sql.transaction():
        place.sql.execute("SELECT FROM workflow_checkpoints WHERE workflow_id = %s FOR UPDATE", (ids.workflow,))
        waiting = run.start("save", *ids, '{"n": 2}')
        until(lambda: place.sql.execute(WAITING).fetchone() == (True,), "the save waits")
        waiting.send_signal(signal.SIGINT)
        out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out, err.count("\n")) == (130, "", 1)
    assert err.startswith("checkpoint: interrupted")
    assert run("get", *ids, "--raw").out == "{}\n"


def test_a_fault_of_the_program_shows_its_traceback(run_offline: CommandLine, tmp_path: Path) -> None:
    """INTERNAL_ERROR says that the traceback is on stderr, and there it is, whatever the log level."""
    (tmp_path / "sitecustomize.py").write_text(A_BUG, encoding="utf-8")
    done = run_offline("health", PYTHONPATH=f"{tmp_path}:{run_offline.package}")
    assert done.status == 1
    assert "ZeroDivisionError: a bug of this test" in done.err
    assert done.err.splitlines()[-1].startswith("checkpoint: INTERNAL_ERROR")


def test_every_code_has_its_status() -> None:
    """What a caller has mistaken is 2, what the database did is 3, and every other refusal 1."""
    of = {code: exit_status.of_code(code) for code in CODES}
    assert {code for code in CODES if of[code] == 2} == {
        "INVALID_JSON",
        "REQUEST_TOO_LARGE",
        "UNKNOWN_ACTION",
        "INVALID_ARG",
    }
    assert {code for code in CODES if of[code] == 3} == {
        "DB_NOT_CONFIGURED",
        "PG_WRITE_ERROR",
        "PG_WRITE_UNKNOWN",
        "PG_READ_ERROR",
        "PG_LIST_ERROR",
        "VERIFY_FAILED",
        "REBUILD_FAILED",
    }
