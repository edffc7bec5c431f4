"""One table: for each action the same request through each door gives the same data and the same code."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from checkpoint.actions import NAMES
from checkpoint.in_process import ManagerSettings
from checkpoint.settings import VARIABLES
from tests.doors.conftest import spot
from tests.doors.doors import DOORS, PROCESS_A_REQUEST, comparable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.doors.doors import Door, Envelope
    from tests.support.database import Connection
    from tests.support.responses import Responses


class Earlier(NamedTuple):
    """Stands for a value that the answer to an earlier row had."""

    row: str
    field: str


class Row(NamedTuple):
    """One request; `code` is what every door has to answer, None for a success."""

    name: str
    action: str
    fields: dict[str, Any]
    code: str | None = None


KEY = {"workflow_id": "wf", "step_id": "one"}
STATE = {"n": 2**70, "f": 1.5, "text": "\u2028 \u00e9 \x00", "list": [1, [None, True, {}]]}
ASKED = {"workflow_id": "wf", "step_id": "report", "input": {"b": [1, 2.5], "a": "\u00e9"}}
TOKEN = Earlier("an approval asked for", "approval_token")
TABLE = (
    Row("a first save", "save", {**KEY, "state_data": STATE}),
    Row("a save by revision", "save", {**KEY, "state_data": {}, "expected_revision": 1}),
    Row("a save by a wrong revision", "save", {**KEY, "state_data": {}, "expected_revision": 1}, "REVISION_CONFLICT"),
    Row("a save by another tenant", "save", {**KEY, "state_data": {}, "tenant_id": "other"}, "TENANT_CONFLICT"),
    Row("a save of a list", "save", {**KEY, "state_data": [1]}, "INVALID_ARG"),
    Row("a second save", "save", {"workflow_id": "wf", "step_id": "two", "tenant_id": "default", "state_data": STATE}),
    Row("a get", "get", {"workflow_id": "wf", "step_id": "two"}),
    Row("a get of nothing", "get", {"workflow_id": "wf", "step_id": "none"}),
    Row("a get of another tenant", "get", {**KEY, "tenant_id": "other"}),
    Row("a get without a name", "get", {"workflow_id": "", "step_id": "two"}, "INVALID_ARG"),
    Row("a page", "list", {"workflow_id": "wf", "limit": 1}),
    Row("the next page", "list", {"workflow_id": "wf", "limit": 1, "cursor": Earlier("a page", "next_cursor")}),
    Row("a page without states", "list", {"workflow_id": "wf", "include_state": False}),
    Row("a page of no length", "list", {"workflow_id": "wf", "limit": 0}, "INVALID_ARG"),
    Row("the workflows", "workflows", {}),
    Row("a cursor of another list", "workflows", {"cursor": Earlier("a page", "next_cursor")}, "INVALID_ARG"),
    Row("a cached get", "cached_get", {"workflow_id": "wf", "step_id": "two"}),
    Row("a cached get of nothing", "cached_get", {"workflow_id": "wf", "step_id": "none", "allow_stale": True}),
    Row("a cached get of a number", "cached_get", {"workflow_id": 5, "step_id": "two"}, "INVALID_ARG"),
    Row("a lossy entry", "cache", {"workflow_id": "wf", "step_id": "lossy", "state_data": STATE}),
    Row("it read", "cached_get", {"workflow_id": "wf", "step_id": "lossy"}),
    Row("another tenant's entry", "cache", {**KEY, "state_data": {}, "tenant_id": "other"}, "TENANT_CONFLICT"),
    Row("a difference", "verify", {"workflow_id": "wf"}),
    Row("a rebuild", "rebuild", {"tenant_id": "default"}),
    Row("a rebuild of a number", "rebuild", {"tenant_id": 5}, "INVALID_ARG"),
    Row("no difference", "verify", {"workflow_id": "", "tenant_id": ""}),
    Row("a verify of a number", "verify", {"workflow_id": 5}, "INVALID_ARG"),
    Row("a delete of one step", "delete", KEY),
    Row("a delete of what is gone", "delete", KEY),
    Row("a delete of no step", "delete", {"workflow_id": "wf"}, "INVALID_ARG"),
    Row("a dry prune", "prune", {"older_than_sec": 1, "workflow_id": "none", "dry_run": True}),
    Row("a prune of nothing", "prune", {"older_than_sec": 3_000_000_000, "all_tenants": True}),
    Row("a prune of the future", "prune", {"older_than_sec": 0}, "INVALID_ARG"),
    Row("no report yet", "request_approval", ASKED),
    Row("an approval asked for", "request_approval", {**ASKED, "report": "words", "output": "report.txt"}),
    Row("another input", "request_approval", {**ASKED, "input": "text"}, "INPUT_CHANGED"),
    Row("what waits", "pending", {}),
    Row("what waits, too little of it", "pending", {"limit": 0}, "INVALID_ARG"),
    Row("a wrong token", "approve", {**ASKED, "token": "wrong"}, "TOKEN_MISMATCH"),
    Row("a yes", "approve", {**ASKED, "token": TOKEN, "by": "me", "reason": "good"}),
    Row("the yes again", "approve", {**ASKED, "token": TOKEN}),
    Row("a no after the yes", "reject", {**ASKED, "token": TOKEN}, "ALREADY_DECIDED"),
    Row("a save onto it", "save", {"workflow_id": "wf", "step_id": "report", "state_data": {}}, "KIND_CONFLICT"),
    Row("another question", "request_approval", {**KEY, "input": [1], "report": "words", "expires_in_sec": 1000}),
    Row("a no", "reject", {**KEY, "token": Earlier("another question", "approval_token"), "reason": "bad"}),
    Row("a no to nothing", "reject", {"workflow_id": "wf", "step_id": "none", "token": "x"}, "APPROVAL_NOT_FOUND"),
    Row("the state of things", "healthcheck", {}),
)
OF_EACH: dict[str, dict[str, Any]] = {
    "save": {**KEY, "state_data": {}},
    "get": KEY,
    "list": {"workflow_id": "wf"},
    "workflows": {},
    "cached_get": KEY,
    "rebuild": {},
    "verify": {},
    "delete": KEY,
    "prune": {"older_than_sec": 1},
    "request_approval": ASKED,
    "approve": {**KEY, "token": "x"},
    "reject": {**KEY, "token": "x"},
    "pending": {},
}
WITHOUT_POSTGRESQL = tuple(
    Row(f"{action} without PostgreSQL", action, fields, "DB_NOT_CONFIGURED") for action, fields in OF_EACH.items()
)


def replayed(door: Door, rows: tuple[Row, ...]) -> dict[str, Envelope]:
    """The answers of one door to the rows, in their order."""
    answers: dict[str, Envelope] = {}

    def filled(fields: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: answers[value.row]["data"][value.field] if isinstance(value, Earlier) else value
            for name, value in fields.items()
        }

    for row in rows:
        answer = door(row.action, filled(row.fields))
        if answer is not None:
            answers[row.name] = answer
    return answers


@pytest.fixture(scope="module")
def answers(
    admin: Connection, database_url: str, responses: Responses, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, Envelope]]:
    """What each door answered to each row, each door on a schema and a folder of its own."""
    found: dict[str, dict[str, Envelope]] = {}
    for name, opened in DOORS.items():
        folder = tmp_path_factory.mktemp("door")
        with ExitStack() as stack:
            place = stack.enter_context(spot(admin, database_url, folder / "data"))
            door = stack.enter_context(opened(place.settings, responses, folder))
            found[name] = replayed(door, TABLE)
        with opened({"DATABASE_URL": None, "CHECKPOINT_DATA_DIR": str(folder / "offline")}, responses, folder) as door:
            found[name] |= replayed(door, WITHOUT_POSTGRESQL)
    return found


@pytest.mark.parametrize("row", TABLE + WITHOUT_POSTGRESQL, ids=lambda row: row.name)
def test_every_door_gives_the_same_data_and_the_same_code(answers: dict[str, dict[str, Envelope]], row: Row) -> None:
    """Values that differ from run to run aside, no door differs from the JSON lines."""
    expected = answers["JSON lines"][row.name]
    assert expected["code"] == row.code, expected
    for door in DOORS:
        counters = door not in PROCESS_A_REQUEST
        if row.name in answers[door]:
            assert comparable(answers[door][row.name], counters=counters) == comparable(expected, counters=counters), (
                door
            )


def test_only_a_number_for_an_id_cannot_be_said_at_a_door(answers: dict[str, dict[str, Envelope]]) -> None:
    """At the command line every word is text, so three refusals are out of its reach; all else is asked everywhere."""
    unsaid = {door: {row.name for row in TABLE + WITHOUT_POSTGRESQL} - answers[door].keys() for door in DOORS}
    numbers = {"a cached get of a number", "a rebuild of a number", "a verify of a number"}
    assert unsaid == {door: numbers if door == "command line" else set() for door in DOORS}


def test_the_table_has_a_success_and_a_refusal_of_every_action() -> None:
    """Nothing that a door could get wrong is left out; a healthcheck is never refused, and takes nothing."""
    rows = TABLE + WITHOUT_POSTGRESQL
    assert {row.action for row in rows if row.code is None} == set(NAMES)
    assert {row.action for row in rows if row.code is not None} == set(NAMES) - {"healthcheck"}


def test_the_python_door_knows_the_settings_of_the_others() -> None:
    """Every variable is a keyword, but the limit of lines, of which there are none."""
    keywords = {"DATABASE_URL" if name == "database_url" else f"CHECKPOINT_{name.upper()}" for name in _keywords()}
    assert keywords == {variable.name for variable in VARIABLES} - {"CHECKPOINT_MAX_REQUEST_BYTES"}


def _keywords() -> set[str]:
    return set(ManagerSettings.__annotations__)
