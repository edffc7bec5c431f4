"""The wire is UTF-8 whatever the locale of the process is (contract, section 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.conftest import StartWorker

NOT_UTF_8 = {
    "LC_ALL": "C",
    "LANG": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONIOENCODING": "ascii:strict",
}
STATE = {"中文": "é 😀 \u2028"}


def test_text_of_every_script_passes_in_the_c_locale(start_offline_worker: StartWorker) -> None:
    """Ids and states outside of ASCII come back as they were, and refusals may quote them."""
    worker = start_offline_worker(NOT_UTF_8)
    key = {"workflow_id": "工作流", "step_id": "étape 😀"}
    assert worker.ask({"action": "cache", **key, "state_data": STATE})["step_id"] == "étape 😀"
    assert worker.ask({"action": "cached_get", **key})["state_data"] == STATE
    assert worker.request({"action": "cached_get", **key, "字段": 1})["code"] == "INVALID_ARG"
    assert worker.request({"action": "操作"})["code"] == "UNKNOWN_ACTION"
    assert worker.finish() == []


def test_postgresql_gives_back_utf_8_in_the_c_locale(start_worker: StartWorker) -> None:
    """The same through PostgreSQL, whatever encoding the client would choose by itself."""
    worker = start_worker({**NOT_UTF_8, "PGCLIENTENCODING": "LATIN1"})
    key = {"workflow_id": "工作流", "step_id": "étape 😀"}
    worker.ask({"action": "save", **key, "state_data": STATE})
    assert worker.ask({"action": "get", **key})["state_data"] == STATE
    assert worker.ask({"action": "list", "workflow_id": "工作流"})["count"] == 1


@pytest.mark.parametrize("locale", [{}, NOT_UTF_8], ids=["the machine's locale", "C locale"])
def test_the_data_folder_may_have_any_name(
    start_offline_worker: StartWorker, tmp_path: Path, locale: Mapping[str, str | None]
) -> None:
    """A folder named outside of ASCII works, and paths in answers are the ones on the disk."""
    folder = tmp_path / "données 中文"
    worker = start_offline_worker({**locale, "CHECKPOINT_DATA_DIR": str(folder)})
    written = worker.ask({"action": "cache", "workflow_id": "wf", "step_id": "s", "state_data": STATE})
    assert written["written"]
    assert (folder / "cache.db").exists()
    assert worker.ask({"action": "healthcheck"})["sqlite"]["path"] == str(folder / "cache.db")
