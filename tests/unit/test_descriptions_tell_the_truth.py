"""What the product says of itself is what it is: one set of actions, codes and settings, wherever they are written down."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from skills_ref.parser import parse_frontmatter

import checkpoint
from checkpoint.actions import NAMES
from checkpoint.errors import CODES
from checkpoint.settings import VARIABLES
from tests.support.descriptions import (
    CONTRACT,
    REPOSITORY,
    SCHEMAS,
    SKILL,
    SKILL_JSON,
    anchors,
    links,
    schema,
    table,
)

if TYPE_CHECKING:
    from pathlib import Path

PAGES = [REPOSITORY / "README.md", SKILL, *sorted((REPOSITORY / "docs").rglob("*.md"))]
FRONT_MATTER_FIELDS = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
TRIGGERS = ("检查点保存", "崩溃恢复", "缓存重建", "一致性验证", "工作流状态持久化")
MODULES = {path.stem for path in (REPOSITORY / "checkpoint" / "actions").glob("*.py") if not path.stem.startswith("_")}
ACTIONS = {action["name"]: action for action in SKILL_JSON["actions"]}


def _front_matter() -> dict[str, Any]:
    """Return the front matter of SKILL.md, read by a parser that refuses everything but YAML in block style."""
    front: dict[str, Any]
    front, _body = parse_frontmatter(SKILL.read_text(encoding="utf-8"))
    return front


def _named(cell: str) -> set[str]:
    """Return the request fields that a table cell names."""
    known = {field for name in MODULES for field in schema(f"{name}.request.json")["properties"]}
    return set(re.findall(r"[a-z_]+", cell)) & known


def _fields(action: str) -> set[str]:
    return set(schema(f"{action}.request.json")["properties"]) - {"action"}


def test_skill_json_is_valid_by_its_own_schema() -> None:
    """skill.json has the shape that schemas/skill.schema.json describes."""
    jsonschema.Draft202012Validator(schema("skill.schema.json")).validate(SKILL_JSON)


def test_the_actions_are_the_same_set_everywhere() -> None:
    """Modules, dispatch, schemas, skill.json, SKILL.md and the contract page know the same actions, each once."""
    assert sorted(NAMES) == sorted(MODULES)
    assert {path.name.split(".")[0] for path in SCHEMAS.glob("*.request.json")} == MODULES
    assert {path.name.split(".")[0] for path in SCHEMAS.glob("*.response.json")} == MODULES
    for listed in (
        [action["name"] for action in SKILL_JSON["actions"]],
        [row[0] for row in table(SKILL, "action")],
        [row[0] for row in table(CONTRACT, "action")],
    ):
        assert sorted(listed) == sorted(MODULES)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_an_action_is_described_alike_everywhere(name: str) -> None:
    """skill.json points to the action's schemas and repeats their words; both pages name exactly its fields."""
    request = schema(f"{name}.request.json")
    action = ACTIONS[name]
    assert (action["request"], action["response"]) == (f"schemas/{name}.request.json", f"schemas/{name}.response.json")
    assert action["summary"] == request["description"]
    assert request["properties"]["action"]["const"] == name
    (skill_row,) = (row for row in table(SKILL, "action") if row[0] == name)
    assert _named(skill_row[2]) == set(request["required"]) - {"action"}
    assert _named(skill_row[3]) == _fields(name) - set(request["required"])
    (contract_row,) = (row for row in table(CONTRACT, "action") if row[0] == name)
    assert _named(contract_row[1]) == _fields(name)


def test_only_delete_and_prune_are_called_destructive_and_nothing_that_writes_is_called_read_only() -> None:
    """A host that asks its user before destructive actions asks for these two, and may let the read-only ones pass."""
    assert {name for name, action in ACTIONS.items() if action["destructive"]} == {"delete", "prune"}
    writing = {name for name, action in ACTIONS.items() if not action["read_only"]}
    assert writing == {"save", "cache", "rebuild", "delete", "prune", "request_approval", "approve", "reject"}


def test_the_codes_are_the_same_table_everywhere() -> None:
    """errors.py, skill.json, the envelope, SKILL.md and the contract page know the same codes in the same order."""
    assert SKILL_JSON["codes"] == [
        {"name": code.name, "meaning": code.meaning, "retry": code.retry} for code in CODES.values()
    ]
    assert schema("envelope.json")["$defs"]["code"]["enum"] == list(CODES)
    assert [row[:2] for row in table(SKILL, "code")] == [[code.name, code.retry] for code in CODES.values()]
    assert [row[0] for row in table(CONTRACT, "code")] == list(CODES)
    assert all(row[2] for row in table(SKILL, "code")), "a code without what to do"


def test_every_code_belongs_to_an_action_or_to_the_line_before_its_action_is_known() -> None:
    """A code that nothing may answer would be a dead promise."""
    before = set(SKILL_JSON["entry"]["codes"])
    of_actions = {code for action in ACTIONS.values() for code in action["codes"]}
    assert not before & of_actions
    assert before | of_actions == set(CODES)


def test_the_settings_are_the_same_table_everywhere() -> None:
    """settings.py, skill.json and the contract page know the same variables with the same defaults."""
    assert SKILL_JSON["environment"] == [
        {"name": variable.name, "default": variable.default, "meaning": variable.meaning} for variable in VARIABLES
    ]
    assert [[row[0], row[1].strip("`")] for row in table(CONTRACT, "variable")] == [
        [variable.name, "none" if variable.default is None else variable.default] for variable in VARIABLES
    ]


def test_no_page_names_a_setting_that_does_not_exist() -> None:
    """Whoever sets a variable that a page names sets something."""
    known = {variable.name for variable in VARIABLES}
    for page in [*PAGES, REPOSITORY / "skill.json"]:
        named = set(re.findall(r"\bCHECKPOINT_[A-Z_]+\b", page.read_text(encoding="utf-8")))
        assert named - {"CHECKPOINT_TEST_CONTAINERS"} <= known, page.name


def test_name_version_licence_and_description_are_the_same_everywhere() -> None:
    """skill.json, the front matter of SKILL.md, the package and LICENSE agree."""
    front = _front_matter()
    assert (SKILL_JSON["name"], SKILL_JSON["description"], SKILL_JSON["license"]) == (
        front["name"],
        front["description"],
        front["license"],
    )
    assert SKILL_JSON["version"] == front["metadata"]["version"] == checkpoint.__version__
    assert (REPOSITORY / "LICENSE").read_text(encoding="utf-8").startswith(f"{front['license']} License\n")


def test_the_entry_of_skill_json_can_be_started() -> None:
    """The program that skill.json starts, and the envelope that it names, are there."""
    entry = SKILL_JSON["entry"]
    assert (REPOSITORY / entry["command"][-1]).is_file()
    assert (REPOSITORY / entry["envelope"]).is_file()


def test_the_front_matter_keeps_to_agent_skills() -> None:
    """Only the fields of the format, in block style, with a description that says what and when in two languages."""
    front = _front_matter()
    assert set(front) <= FRONT_MATTER_FIELDS
    assert all(isinstance(value, str) for value in front["metadata"].values())
    assert len(front["description"]) < 1024
    assert len(front["compatibility"]) <= 500
    assert "Use it for" in front["description"]
    assert all(word in front["description"] for word in TRIGGERS)


def test_the_agent_skills_validator_accepts_a_copy(tmp_path: Path) -> None:
    """`agentskills validate` passes on a folder named checkpoint-manager that holds SKILL.md."""
    copy = tmp_path / "checkpoint-manager"
    copy.mkdir()
    shutil.copy(SKILL, copy)
    command = shutil.which("agentskills", path=sysconfig.get_path("scripts"))
    assert command is not None, "skills-ref is a development requirement"
    result = subprocess.run([command, "validate", str(copy)], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    """The file that a page links to exists, and so does the heading."""
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert target.is_relative_to(REPOSITORY), link
        if anchor:
            assert anchor in anchors(target), link
