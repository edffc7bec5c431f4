"""Whatever is wrong with the artifacts folder: OUTPUT_WRITE_ERROR, still awaiting, and the same token works afterwards."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.approval.asking import REPORT, approve, ask, data_of, reject, request, status
from tests.support.proxy import Proxy
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

KILLED_RUNNER = Path(__file__).with_name("killed_runner.py")
# Rights bind root too once it has given up the right to ignore them.
WITHOUT_PRIVILEGES = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.geteuid() == 0 else ()
SMALL_FILES_ONLY = ("sh", "-c", 'ulimit -f 64; exec "$@"', "sh")


@pytest.fixture
def bound_by_rights(start_worker: StartWorker, database_url: str) -> Iterator[Worker]:
    """A runner that may only do what the rights of files and folders say, though it belongs to root."""
    way = Proxy(database_url)  # the socket of the server lies in a folder that is closed to it
    yield start_worker({"DATABASE_URL": way.url}, argv=(*WITHOUT_PRIVILEGES, sys.executable, str(RUNNER)))
    way.close()


def _refused(worker: Worker, step: str, token: str, folder: Path) -> None:
    """The approval is refused, names the folder, and waits on."""
    answer = approve(worker, step, token)
    assert (answer["code"], str(folder) in answer["error"]) == ("OUTPUT_WRITE_ERROR", True)
    assert status(worker, step) == "awaiting-approval"


def test_a_folder_that_may_not_be_written(bound_by_rights: Worker, artifacts: Path) -> None:
    """The folder or one in it: nothing is left behind, and after the repair the yes counts; a check too needs rights."""
    worker = bound_by_rights
    inner = artifacts / "inner"
    inner.mkdir(parents=True)
    asked = ask(worker, "s", output="inner/new/report.md")
    for folder in (inner, artifacts):
        folder.chmod(0o500 if folder is inner else 0o000)
        _refused(worker, "s", asked["approval_token"], artifacts)
        folder.chmod(0o700)
        assert list(inner.iterdir()) == []
    assert data_of(approve(worker, "s", asked["approval_token"]))["status"] == "completed"
    artifacts.chmod(0o000)
    for answer in (worker.request(request("s")), approve(worker, "s", asked["approval_token"])):
        assert answer["code"] == "OUTPUT_WRITE_ERROR"
    artifacts.chmod(0o700)
    assert ask(worker, "s")["verified"]


def test_a_folder_in_whose_place_is_a_file(worker: Worker, artifacts: Path) -> None:
    """A file or a dangling link where the folder or one in it should be; the file stays as it is."""
    artifacts.parent.mkdir(parents=True, exist_ok=True)
    asked = ask(worker, "s", output="inner/report.md")
    artifacts.write_text("a file", encoding="utf-8")
    _refused(worker, "s", asked["approval_token"], artifacts)
    assert artifacts.read_text(encoding="utf-8") == "a file"
    artifacts.unlink()
    artifacts.symlink_to("nowhere")
    _refused(worker, "s", asked["approval_token"], artifacts)
    artifacts.unlink()
    artifacts.mkdir()
    (artifacts / "inner").write_text("a file", encoding="utf-8")
    _refused(worker, "s", asked["approval_token"], artifacts)
    (artifacts / "inner").unlink()
    assert data_of(approve(worker, "s", asked["approval_token"]))["status"] == "completed"
    assert (artifacts / "inner" / "report.md").read_text(encoding="utf-8") == REPORT


def test_a_file_that_does_not_find_room(start_worker: StartWorker, artifacts: Path) -> None:
    """The system refuses to let the file grow: no part of it stays, and a process with room completes it."""
    cramped = start_worker(argv=(*SMALL_FILES_ONLY, sys.executable, str(RUNNER)))
    report = REPORT * 10_000
    asked = ask(cramped, "s", report=report)
    _refused(cramped, "s", asked["approval_token"], artifacts)
    assert list(artifacts.iterdir()) == []
    roomy = start_worker()
    assert data_of(approve(roomy, "s", asked["approval_token"]))["status"] == "completed"
    assert (artifacts / os.path.basename(asked["output"])).read_text(encoding="utf-8") == report


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO], ids=["no space left", "input/output error"])
def test_any_call_may_fail(error: int, start_worker: StartWorker, artifacts: Path) -> None:
    """Each call of the file system fails once: a truthful refusal, never a part of a file, and the next yes completes."""
    worker = start_worker({"FAIL_WITH": str(error)}, argv=(sys.executable, str(KILLED_RUNNER)))
    failed = 0
    for number in range(1, 100):
        step, file = f"s{number}", artifacts / f"d{number}" / "report.md"
        token = ask(worker, step, output=f"d{number}/report.md")["approval_token"]
        answer = approve(worker, step, token)
        assert answer["code"] in (None, "OUTPUT_WRITE_ERROR"), number
        assert not file.exists() or file.read_text(encoding="utf-8") == REPORT
        if answer["code"] is not None:
            failed += 1
            assert status(worker, step) == "awaiting-approval"
        assert data_of(approve(worker, step, token))["already_completed"] == (answer["code"] is None)
        assert file.read_text(encoding="utf-8") == REPORT
        if number > failed + 3:
            break
    assert failed > 10


def test_a_no_is_not_given_where_it_cannot_be_seen_whether_yes_was_carried_out(
    bound_by_rights: Worker, artifacts: Path
) -> None:
    """The folder cannot be read: OUTPUT_WRITE_ERROR for `reject`; where no folder is, nothing can have been published."""
    worker = bound_by_rights
    artifacts.mkdir(parents=True)
    token = ask(worker, "s")["approval_token"]
    artifacts.chmod(0o000)
    assert reject(worker, "s", token)["code"] == "OUTPUT_WRITE_ERROR"
    artifacts.rmdir()
    assert data_of(reject(worker, "s", token))["status"] == "rejected"
