"""The report of a verify: written whole, never in another's place, and not at all where it cannot be (contract, section 3)."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.asking import done

if TYPE_CHECKING:
    from tests.support.place import Place
    from tests.support.worker import Worker

Verify = Callable[[], dict[str, Any]]


@pytest.fixture
def reports(place: Place) -> Path:
    """Where the folder of the reports will be."""
    path = place.folder / "reports"
    if path.is_file():
        path.unlink()
    shutil.rmtree(path, ignore_errors=True)
    return path


@pytest.fixture
def verify(place: Place, key: dict[str, str]) -> Verify:
    """Verifies a workflow of one checkpoint."""
    done(place.worker, "save", **key, state_data={})
    return partial(done, place.worker, "verify", workflow_id=key["workflow_id"])


def test_the_newest_50_stay(verify: Verify, reports: Path) -> None:
    """Sixty verifies leave fifty reports: the last ones; every path was another one; nothing else is left."""
    paths = [Path(verify()["report_path"]) for _ in range(60)]
    assert len(set(paths)) == 60
    assert sorted(reports.glob("*.json")) == sorted(paths[-50:])
    assert {path.stem for path in reports.iterdir()} == {path.stem for path in paths[-50:]}
    for path in paths[-50:]:
        assert json.loads(path.read_text(encoding="utf-8"))["consistent"] is True


def test_files_of_others_in_the_folder_stay(verify: Verify, reports: Path) -> None:
    """What somebody else put there is neither counted nor removed."""
    reports.mkdir(mode=0o700)
    mine = [reports / "notes.txt", reports / "0-first.json", reports / "verify.md", reports / "verify-1.txt"]
    for path in mine:
        path.write_text("mine", encoding="utf-8")
    for _ in range(55):
        verify()
    assert all(path.read_text(encoding="utf-8") == "mine" for path in mine)
    assert len(list(reports.glob("verify-2*.json"))) == 50


def test_a_file_in_the_place_of_the_folder(verify: Verify, reports: Path) -> None:
    """A file is there already: the result comes, report_path is null, report_error says why; the file stays."""
    reports.write_text("mine", encoding="utf-8")
    answer = verify()
    assert (answer["consistent"], answer["report_path"]) == (True, None)
    assert str(reports) in answer["report_error"]
    assert reports.read_text(encoding="utf-8") == "mine"


def test_a_folder_that_cannot_be_written(verify: Verify, reports: Path) -> None:
    """The folder is one in which nothing can be written: the same, and after the repair reports come again."""
    if os.geteuid() == 0:  # root writes whatever the bits say
        reports.symlink_to("/proc/self")
    else:
        reports.mkdir(mode=0o500)
    answer = verify()
    assert (answer["consistent"], answer["report_path"]) == (True, None)
    assert answer["report_error"]
    if reports.is_symlink():
        reports.unlink()
    else:
        reports.chmod(0o700)
    assert Path(verify()["report_path"]).is_file()


def test_a_report_is_complete_at_every_moment(place: Place, key: dict[str, str], verify: Verify, reports: Path) -> None:
    """Whoever looks into the folder while reports are written finds complete JSON under every .json name."""
    verify()
    for _ in range(30):
        place.worker.send({"action": "verify", "workflow_id": key["workflow_id"]})
    for _ in range(30):
        for path in reports.glob("*.json"):
            assert json.loads(path.read_text(encoding="utf-8"))["pg_count"] == 1
        place.worker.read_line()


def test_the_report_of_this_verify_stays_beside_fifty_of_the_future(worker: Worker, folder: Path) -> None:
    """Where the clock was ahead once, the report that the answer names is there all the same."""
    reports = folder / "reports"
    reports.mkdir(mode=0o700, parents=True)
    for number in range(50):
        (reports / f"verify-20990101T000000Z-000000000-{number:08x}.json").write_text("{}")
    assert Path(done(worker, "verify")["report_path"]).is_file()
