"""Rows that another program wrote with SQL: on one line, as they stand there (contract, section 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.asking import done
from tests.support.json_text import holds

if TYPE_CHECKING:
    from tests.support.place import Place

BROKEN = '{\n  "a": [1.0,\r\n 1e16],\r"b\\n": "\\u000a",\n\n"c": -0.0\n}'
TEXTS = {
    "line breaks": BROKEN,
    "windows": '{"a":\r\n1,\r\n"a":\r\n2}',
    "nothing else": "{\n\n\n}",
    "many": "{" + "\n" * 100_000 + '"a":1}',
    "a lone surrogate": '{"a":"\\ud800"}',
    "not ascii": '{"\u2028\n": "é"}'.replace("\n", "\\n"),
}


def insert(place: Place, workflow: str, text: str) -> None:
    """The row, with every other column left to its default."""
    statement = "INSERT INTO workflow_checkpoints (workflow_id, step_id, state_data) VALUES (%s, 's', %s::json)"
    place.sql.execute(statement, (workflow, text))


@pytest.mark.parametrize("name", TEXTS)
def test_a_row_comes_back_on_one_line(place: Place, workflow: str, name: str) -> None:
    """Get, list, cached_get from PostgreSQL and from the cache: one line, the same tokens; verify is consistent all along."""
    insert(place, workflow, TEXTS[name])
    key = {"workflow_id": workflow, "step_id": "s"}
    for action, fields in (("get", key), ("list", {"workflow_id": workflow}), ("cached_get", key), ("cached_get", key)):
        answer = done(place.worker, action, **fields)
        assert holds(place.worker.raw[-1], TEXTS[name]), action
    assert answer["source"] == "sqlite"
    assert done(place.worker, "verify", workflow_id=workflow)["consistent"] is True
    assert done(place.worker, "rebuild", workflow_id=workflow)["rebuilt_count"] == 1
    assert done(place.worker, "cached_get", **key)["source"] == "sqlite"
    assert holds(place.worker.raw[-1], TEXTS[name])
    assert done(place.worker, "verify", workflow_id=workflow)["consistent"] is True


def test_a_save_continues_a_row_of_another_program(place: Place, workflow: str) -> None:
    """The row is a checkpoint like any other: of the default tenant, revision 1, and a save makes it revision 2."""
    insert(place, workflow, BROKEN)
    row = done(place.worker, "get", workflow_id=workflow, step_id="s")
    assert (row["tenant_id"], row["revision"]) == ("default", 1)
    saved = done(place.worker, "save", workflow_id=workflow, step_id="s", state_data={}, expected_revision=1)
    assert (saved["revision"], saved["id"], saved["created_at"]) == (2, row["id"], row["created_at"])


def test_such_a_row_is_verified_before_the_cache_has_it(place: Place, workflow: str) -> None:
    """Before a rebuild verify tells that only PostgreSQL has it; after one it is consistent."""
    insert(place, workflow, BROKEN)
    assert done(place.worker, "verify", workflow_id=workflow)["mismatch_counts"]["pg_only"] == 1
    done(place.worker, "rebuild", workflow_id=workflow)
    assert done(place.worker, "verify", workflow_id=workflow)["consistent"] is True
