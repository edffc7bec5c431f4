"""examples/approve_report.py: every command of its section in examples/README.md prints what stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.descriptions import REPOSITORY
from tests.support.environment import worker_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PAGE = REPOSITORY / "examples" / "README.md"
SHOWN_FOLDER, SHOWN_HOST = "/home/you", "your-host"
TOKEN = re.compile(r"[0-9a-f]{64}")
PYTHON = f'python() {{ "{sys.executable}" "$@"; }}; '


def section(page: str) -> str:
    """What the page says of this example."""
    return page.partition("\n## approve_report.py\n")[2].partition("\n## ")[0]


def blocks(text: str) -> list[str]:
    """The fenced blocks that show commands and what they print."""
    return [block for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL) if "$ " in block]


class Terminal:
    """A shell in an empty folder that has `examples` in it; what it prints looks as on the page."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._folder = folder
        self._env = dict(env)
        (folder / "examples").symlink_to(REPOSITORY / "examples")

    def run(self, command: str) -> str:
        """What the command prints, stdout and stderr as they come; remembers the token that is shown."""
        ended = subprocess.run(
            ["sh", "-c", PYTHON + command],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        for token in TOKEN.findall(ended.stdout):
            self._env["TOKEN"] = token
        output = ended.stdout.replace(f"the host {os.uname().nodename}.", f"the host {SHOWN_HOST}.")
        return output.replace(str(self._folder), SHOWN_FOLDER)

    def retype(self, block: str) -> str:
        """The block, with what its commands print now."""
        commands = [line for line in block.splitlines() if line.startswith("$ ")]
        return "".join(f"{command}\n{self.run(command[2:])}" for command in commands)


def test_every_command_prints_what_the_page_shows(tmp_path: Path, database_url: str, schema: str) -> None:
    """Start, approve and again, a changed input, a changed and a removed output, and a crash."""
    terminal = Terminal(
        tmp_path, worker_environment({"DATABASE_URL": database_url, "CHECKPOINT_SCHEMA": schema, "USER": "you"})
    )
    shown = blocks(section(PAGE.read_text(encoding="utf-8")))
    assert len(shown) >= 5
    for block in shown:
        assert TOKEN.sub("<token>", terminal.retype(block)) == TOKEN.sub("<token>", block)
