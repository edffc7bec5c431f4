"""Where an output file may be: below the artifacts folder, through no link, under a name that no other approval has."""

from __future__ import annotations

import os
import socket
import stat
import time
import unicodedata
from typing import TYPE_CHECKING

from tests.approval.asking import REPORT, approve, ask, data_of, request, status

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.worker import Worker

BAD_PATHS = [
    "..", "../x", "a/../../x", "a/..", ".", "./x", "/etc/x", "//x", "a//b", "a/", "/", "a\\..\\b", "..\\x", "a\x00b", "a\nb",
    "a\x7f", "x" * 256, "é" * 128, "a/" + "x" * 256, ".checkpoint-0123456789abcdef.tmp", "a/.CHECKPOINT-0123456789abcdef.tmp",
    "x" * 1025, "",
]  # fmt: skip
GOOD_PATHS = [
    "a.md",
    "...",
    "..a",
    "a/b/c.md",
    " x ",
    "x" * 255,
    "报告/六月.md",
    "~",
    "$HOME",
    "-rf",
    "%2e%2e",
    "a:b",
    "*",
]
STRANGE_IDS = [
    "..", "../../x", "/etc/passwd", "a/b", "A/B", "a-b", "A-B", "é", "e\u0301", "É", "\u212a", "k", "ﬁ", "fi", "ß", "ss", "CON",
    "nul", "x ", "x", ".x", "报告", "😀", "a" * 255, "a" * 254 + "b",
]  # fmt: skip


def test_a_path_that_leaves_the_folder_is_refused(offline_worker: Worker) -> None:
    """`..`, absolute, empty and unprintable ones are INVALID_ARG, before any database is asked for."""
    for path in BAD_PATHS:
        answer = offline_worker.request(request("s", output=path))
        assert (answer["code"], "output" in answer["error"]) == ("INVALID_ARG", True), path


def test_every_other_relative_path_is_taken_as_it_is(worker: Worker, artifacts: Path) -> None:
    """Folders are made, private; the file has exactly that name."""
    for number, path in enumerate(GOOD_PATHS):
        token = ask(worker, f"s{number}", output=path, report=path)["approval_token"]
        data = data_of(approve(worker, f"s{number}", token))
        assert data["output"] == f"{artifacts}/{path}"
        assert (artifacts / path).read_text(encoding="utf-8") == path


def test_folders_and_files_are_private_whatever_the_umask(start_worker: StartWorker, artifacts: Path) -> None:
    """0700 and 0600, for an open umask and for one that would shut out the owner."""
    for number, mask in enumerate((0o000, 0o777)):
        before = os.umask(mask)
        try:
            worker = start_worker()
        finally:
            os.umask(before)
        token = ask(worker, f"s{number}", output=f"d{number}/e/report.md")["approval_token"]
        assert approve(worker, f"s{number}", token)["success"]
        file = artifacts / f"d{number}" / "e" / "report.md"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        for folder in (file.parent, file.parent.parent, artifacts):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_no_two_ids_share_a_default_name_on_any_file_system(worker: Worker, artifacts: Path) -> None:
    """However names are folded, by case or by Unicode form, all files are there, directly in the folder."""
    names = []
    for workflow in STRANGE_IDS:
        sent = {**request("s"), "workflow_id": workflow}
        names.append(os.path.relpath(data_of(worker.request(sent))["output"], artifacts))
    names += [os.path.relpath(ask(worker, step)["output"], artifacts) for step in STRANGE_IDS]
    folded = {unicodedata.normalize("NFKD", name.casefold()) for name in names}
    assert len(folded) == len(names) == 2 * len(STRANGE_IDS)
    assert all(name.isascii() and name == name.lower() and "/" not in name and name[0].isalnum() for name in names)


def test_a_link_is_never_followed(worker: Worker, artifacts: Path, tmp_path: Path) -> None:
    """A link for a folder or for the file is INVALID_ARG when asked and when decided; what it leads to stays as it is."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret", encoding="utf-8")
    artifacts.mkdir(parents=True)
    (artifacts / "folder").symlink_to(outside)
    (artifacts / "file").symlink_to(outside / "secret")
    (artifacts / "dangling").symlink_to(outside / "new")
    for path in ("folder/x", "folder/secret", "file", "dangling"):
        assert worker.request(request("asked", output=path))["code"] == "INVALID_ARG"
    later = {path: ask(worker, path, output=f"later/{path}")["approval_token"] for path in ("x", "secret")}
    (artifacts / "later").symlink_to(outside)
    for path, token in later.items():
        assert approve(worker, path, token)["code"] == "INVALID_ARG"
    assert [(path.name, path.read_text(encoding="utf-8")) for path in outside.iterdir()] == [("secret", "secret")]
    (artifacts / "later").unlink()
    assert data_of(approve(worker, "x", later["x"]))["status"] == "completed"


def test_a_link_put_in_the_place_of_the_output_is_a_conflict(worker: Worker, artifacts: Path, tmp_path: Path) -> None:
    """A completed record is not satisfied by a link, though it leads to the same bytes."""
    asked = ask(worker, "s", output="report.md")
    assert approve(worker, "s", asked["approval_token"])["success"]
    (artifacts / "report.md").rename(tmp_path / "report.md")
    (artifacts / "report.md").symlink_to(tmp_path / "report.md")
    assert approve(worker, "s", asked["approval_token"])["code"] == "OUTPUT_CONFLICT"
    assert worker.request(request("s"))["code"] == "OUTPUT_CONFLICT"


def test_what_is_no_file_holds_nothing_up(worker: Worker, artifacts: Path) -> None:
    """A folder, a pipe or a socket under the name is OUTPUT_CONFLICT, and is left as it is."""
    artifacts.mkdir(parents=True)
    (artifacts / "folder").mkdir()
    os.mkfifo(artifacts / "pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        before = os.getcwd()
        os.chdir(artifacts)  # the whole path may be longer than a socket's may be
        try:
            bound.bind("socket")
        finally:
            os.chdir(before)
    for name in ("folder", "pipe", "socket"):
        token = ask(worker, name, output=name)["approval_token"]
        assert approve(worker, name, token)["code"] == "OUTPUT_CONFLICT"
        assert status(worker, name) == "awaiting-approval"
    assert sorted(path.name for path in artifacts.iterdir()) == ["folder", "pipe", "socket"]


def test_the_artifacts_folder_itself_may_be_a_link_and_anywhere(start_worker: StartWorker, tmp_path: Path) -> None:
    """What stands above it is the operator's; CHECKPOINT_ARTIFACTS_DIR may be relative and is then made whole."""
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    for number, setting in enumerate((str(tmp_path / "link"), "new/über/folder")):
        worker = start_worker({"CHECKPOINT_ARTIFACTS_DIR": setting}, cwd=tmp_path)
        token = ask(worker, f"s{number}", output="x.md")["approval_token"]
        data = data_of(approve(worker, f"s{number}", token))
        assert data["output"] == str(tmp_path / setting / "x.md")
        assert (tmp_path / setting / "x.md").read_text(encoding="utf-8") == REPORT


def test_left_over_temporary_files_go_and_nothing_else_does(worker: Worker, artifacts: Path) -> None:
    """Of killed processes, once they are ten minutes old; files that only look alike stay."""
    artifacts.mkdir(parents=True)
    names = {
        ".checkpoint-0123456789abcdef.tmp": False,
        ".checkpoint-fedcba9876543210.tmp": True,
        ".checkpoint-0123456789abcdef.tmp.md": True,
        "checkpoint-0123456789abcdef.tmp": True,
    }
    for name in names:
        (artifacts / name).write_text("left over", encoding="utf-8")
        if name != ".checkpoint-fedcba9876543210.tmp":
            os.utime(artifacts / name, (time.time() - 700,) * 2)
    token = ask(worker, "s", output="x.md")["approval_token"]
    assert approve(worker, "s", token)["success"]
    assert {name: (artifacts / name).exists() for name in names} == names
