"""What the product makes on disk is its owner's alone, whatever the umask (contract, section 6)."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import cache_file
from tests.support.asking import done
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from tests.conftest import StartWorker

KEY = {"workflow_id": "wf", "step_id": "s"}


@pytest.mark.parametrize("umask", ["0000", "0777"])
def test_folders_and_files_are_private_under_every_umask(umask: str, start_worker: StartWorker, tmp_path: Path) -> None:
    """Folders 0700, files 0600: cache, its companions and lock, reports, artifacts, what was moved aside, folders above."""
    above = tmp_path / "made"
    folder = above / "on the way" / "data"
    shell = ("/bin/sh", "-c", f'umask {umask}; exec "$0" "$@"', sys.executable, str(RUNNER))
    env = {"CHECKPOINT_DATA_DIR": str(folder), "CHECKPOINT_CACHE_WAIT_MS": "10000"}
    workers = [start_worker(env, argv=shell) for _ in range(2)]
    for worker in workers:
        assert done(worker, "save", **KEY, state_data={"n": 1})["cache_written"]
        assert done(worker, "verify")["report_path"]
    asked = {"workflow_id": "wf", "step_id": "approval"}
    token = done(workers[0], "request_approval", **asked, input={}, report="a report")["approval_token"]
    output = Path(done(workers[1], "approve", **asked, token=token)["output"])
    cache_file.overwrite(folder / cache_file.NAME)
    for worker in workers:
        assert done(worker, "cached_get", **KEY)["found"]
    made = [above, *above.rglob("*")]
    assert output in made
    assert cache_file.moved_aside(folder)
    for path in made:
        mode = stat.S_IMODE(path.lstat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path.relative_to(tmp_path)}: {mode:o}"


def test_a_folder_that_was_there_stays_as_it_is(start_worker: StartWorker, folder: Path) -> None:
    """A data folder that somebody made for a group keeps its mode; the files in it are private all the same."""
    folder.mkdir()
    folder.chmod(0o750)
    worker = start_worker()
    assert done(worker, "save", **KEY, state_data={})["cache_written"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    assert stat.S_IMODE((folder / cache_file.NAME).stat().st_mode) == 0o600
