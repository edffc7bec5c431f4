"""How a worker starts, and what it says when it cannot (contract, sections 1 and 6)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.environment import worker_environment
from tests.support.process import bytes_in
from tests.support.worker import RUNNER, WorkerGone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

HEALTH = {"action": "healthcheck"}
CACHE = {"action": "cache", "workflow_id": "wf", "step_id": "s", "state_data": {}}
MISSING = """\
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec

def find_all_but_one(name, path=None, target=None):
    return None if name == {package!r} else find_spec(name, path, target)

PathFinder.find_spec = find_all_but_one
"""


def refused(start: StartWorker, env: Mapping[str, str | None] | None = None, **options: Any) -> str:
    """Starts a worker that must refuse: status 2, no output, one line on stderr, which is returned."""
    worker = start(env, **options)
    with contextlib.suppress(WorkerGone):  # it may have ended before the line was written
        worker.send(HEALTH)
    worker.close_input()
    assert worker.read_all() == []
    assert worker.wait() == 2, worker.stderr
    assert worker.stderr.count("\n") == 1, worker.stderr
    assert worker.stderr.endswith("\n")
    return worker.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHECKPOINT_CACHE_TTL", "soon"),
        ("CHECKPOINT_CACHE_TTL", "-1"),
        ("CHECKPOINT_CACHE_TTL", "nan"),
        ("CHECKPOINT_CACHE_TTL", "inf"),
        ("CHECKPOINT_CACHE_MAX_BYTES", "1 GiB"),
        ("CHECKPOINT_CACHE_WAIT_MS", "-5"),
        ("CHECKPOINT_CACHE_WAIT_MS", "5.5.5"),
        ("CHECKPOINT_REBUILD_LIMIT", "0"),
        ("CHECKPOINT_REBUILD_LIMIT", "many"),
        ("CHECKPOINT_MAX_REQUEST_BYTES", "0"),
        ("CHECKPOINT_MAX_REQUEST_BYTES", "1e6"),
        ("CHECKPOINT_CONNECT_TIMEOUT", "never"),
        ("CHECKPOINT_CONNECT_TIMEOUT", "-1"),
        ("CHECKPOINT_STATEMENT_TIMEOUT", "0"),
        ("CHECKPOINT_STATEMENT_TIMEOUT", "NaN"),
        ("CHECKPOINT_TIMEZONE", "Mars/Olympus_Mons"),
        ("CHECKPOINT_TIMEZONE", "../../etc/passwd"),
        ("CHECKPOINT_TIMEZONE", "/etc/localtime"),
        ("CHECKPOINT_LOG_LEVEL", "LOUD"),
        ("CHECKPOINT_SCHEMA", "x" * 64),
        ("CHECKPOINT_SCHEMA", "pg_mine"),
        ("DATABASE_URL", "mysql://localhost/x"),
        ("DATABASE_URL", "somewhere"),
        ("DATABASE_URL", "postgresql://app:p%zz@localhost/x"),
        ("DATABASE_URL", "postgresql://[::1/x"),
        ("DATABASE_URL", "postgresql://localhost/x?no_such_option=1"),
        ("DATABASE_URL", "host=localhost dbname"),
    ],
)
def test_a_bad_setting_is_one_line_that_names_it(start_offline_worker: StartWorker, name: str, value: str) -> None:
    """Status 2 before any request is answered, and one line on stderr with the variable in it."""
    assert name in refused(start_offline_worker, {name: value})


def test_a_bad_database_url_is_not_repeated(start_offline_worker: StartWorker) -> None:
    """The line about DATABASE_URL does not show the password in it."""
    for url in ("mysql://app:hunter2@localhost/x", "postgresql://app:hunter2%zz@localhost/x"):
        assert "hunter2" not in refused(start_offline_worker, {"DATABASE_URL": url})


def test_a_bad_setting_is_told_before_any_request_is_read(folder: Path) -> None:
    """The request is still in the pipe when the worker has ended."""
    line = b'{"action":"healthcheck"}\n'
    env = worker_environment({"CHECKPOINT_CACHE_TTL": "soon", "CHECKPOINT_DATA_DIR": str(folder)})
    read_end, write_end = os.pipe()
    with open(read_end, "rb", buffering=0) as requests, open(write_end, "wb", buffering=0) as host:
        host.write(line)
        ended = subprocess.run([sys.executable, str(RUNNER)], stdin=requests, env=env, capture_output=True, check=False)
        assert (ended.returncode, ended.stdout) == (2, b"")
        assert bytes_in(requests) == len(line)


def test_an_empty_setting_counts_as_unset(start_offline_worker: StartWorker) -> None:
    """Variables set to nothing have their defaults."""
    worker = start_offline_worker({"CHECKPOINT_CACHE_TTL": "", "CHECKPOINT_TIMEZONE": "", "DATABASE_URL": ""})
    worker.ask(CACHE)
    get = {"action": "get", "workflow_id": "wf", "step_id": "s"}
    assert worker.request(get)["code"] == "DB_NOT_CONFIGURED"


@pytest.mark.parametrize("arguments", [["--nonsense"], ["requests.jsonl"], ["serve", "now"]])
def test_wrong_command_line_use_is_one_line(start_offline_worker: StartWorker, arguments: list[str]) -> None:
    """The runner takes no arguments: status 2 and one line on stderr."""
    assert refused(start_offline_worker, argv=[sys.executable, str(RUNNER), *arguments])


def test_without_any_package_the_command_that_mends_it_is_told(start_offline_worker: StartWorker) -> None:
    """An interpreter that has none of the packages: status 2, one line that says what to run."""
    line = refused(start_offline_worker, argv=[sys.executable, "-S", str(RUNNER)])
    assert "pip install" in line


@pytest.mark.parametrize("package", ["msgspec", "orjson", "jsonschema_rs", "psycopg"])
def test_a_missing_package_is_told_with_the_command_that_mends_it(
    start_offline_worker: StartWorker, tmp_path: Path, package: str
) -> None:
    """Each package that the worker needs, missing alone: status 2, one line that names it and says what to run."""
    (tmp_path / "sitecustomize.py").write_text(MISSING.format(package=package), encoding="utf-8")
    line = refused(start_offline_worker, {"PYTHONPATH": str(tmp_path)})
    assert package.partition("_")[0] in line
    assert "pip install" in line


def test_the_runner_starts_from_any_folder(start_offline_worker: StartWorker, tmp_path: Path) -> None:
    """The data folder is `data/checkpoint_mcp` below the current folder, wherever the runner lies."""
    here = tmp_path / "some where"
    here.mkdir()
    worker = start_offline_worker({"CHECKPOINT_DATA_DIR": None}, cwd=here)
    assert worker.ask(CACHE)["written"]
    expected = here / "data" / "checkpoint_mcp" / "cache.db"
    assert worker.ask(HEALTH)["sqlite"]["path"] == str(expected)
    assert expected.exists()


def test_the_runner_starts_through_a_link(start_offline_worker: StartWorker, tmp_path: Path) -> None:
    """A symbolic link to runner.py works like the file itself."""
    link = tmp_path / "checkpoint-worker"
    link.symlink_to(RUNNER)
    start_offline_worker(argv=[sys.executable, str(link)]).ask(HEALTH)


def test_a_file_in_the_current_folder_does_not_shadow_a_module(
    start_offline_worker: StartWorker, tmp_path: Path
) -> None:
    """A workflow's own json.py or checkpoint.py beside the caller is not what the worker imports."""
    for name in ("json.py", "checkpoint.py", "msgspec.py", "sqlite3.py"):
        (tmp_path / name).write_text("raise SystemExit('the wrong module')", encoding="utf-8")
    assert start_offline_worker(cwd=tmp_path).ask(CACHE)["written"]


def test_nothing_is_made_before_it_is_needed(offline_worker: Worker, folder: Path) -> None:
    """Refusals alone leave no data folder behind."""
    offline_worker.send_raw(b'not json\n{"action":"get"}\n')
    assert len(offline_worker.finish()) == 2
    assert not folder.exists()
