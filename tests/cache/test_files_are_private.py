"""The data folder is for its owner alone, whatever the umask (contract, section 6)."""

from __future__ import annotations

import stat
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done
from tests.support.worker import RUNNER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.place import Place


@pytest.mark.parametrize("umask", ["000", "777"])
def test_folders_are_0700_and_files_0600(
    place: Place, start_offline_worker: StartWorker, folder: Path, umask: str
) -> None:
    """Under a umask that forbids nothing, and under one that forbids everything."""
    argv = ("/bin/sh", "-c", f'umask {umask}; exec "$0" "$1"', sys.executable, str(RUNNER))
    worker = start_offline_worker({**place.settings, "CHECKPOINT_DATA_DIR": str(folder)}, argv=argv)
    done(worker, "save", workflow_id="umask", step_id=umask, state_data={})
    assert done(worker, "verify")["report_path"]
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in [folder, *folder.rglob("*")]}
    assert {modes.pop(folder.name), modes.pop("reports")} == {0o700}
    assert set(modes.values()) == {0o600}, modes
