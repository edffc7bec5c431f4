"""The files that describe the product, read: skill.json, the schemas, the tables and sessions of the Markdown pages."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMAS = REPOSITORY / "schemas"
SKILL = REPOSITORY / "SKILL.md"
CONTRACT = REPOSITORY / "docs" / "contract.md"

SKILL_JSON: dict[str, Any] = json.loads((REPOSITORY / "skill.json").read_text(encoding="utf-8"))

_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_SESSION = re.compile(r"^### (.*?)\n.*?^```\n(.*?)^```", re.MULTILINE | re.DOTALL)


def schema(name: str) -> dict[str, Any]:
    """Return the schema file `name`, such as "save.request.json", parsed."""
    parsed: dict[str, Any] = json.loads((SCHEMAS / name).read_text(encoding="utf-8"))
    return parsed


def table(page: Path, first_column: str) -> list[list[str]]:
    """Return the rows of the one table of `page` whose head begins with `first_column`; the first cell loses its back quotes."""
    lines = page.read_text(encoding="utf-8").splitlines()
    (head,) = (number for number, line in enumerate(lines) if line.startswith(f"| {first_column} |"))
    rows = []
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        first, *others = (cell.strip() for cell in line.strip("|").split("|"))
        rows.append([first.strip("`"), *others])
    return rows


def links(page: Path) -> list[str]:
    """Return the relative links of `page`, each with its #anchor."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    return [link for link in _LINK.findall(text) if not re.match(r"[a-z]+:", link)]


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of `page`."""
    headings = re.findall(r"^#+ (.*)$", _FENCED.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def sessions() -> dict[str, list[str]]:
    """Return the worked sessions of SKILL.md: heading to the lines in its fence."""
    text = SKILL.read_text(encoding="utf-8").partition("## Worked sessions")[2]
    return {heading: block.splitlines() for heading, block in _SESSION.findall(text)}
