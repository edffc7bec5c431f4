"""Which folder an `embedded:` URL means."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from checkpoint.embedded import EmbeddedError, data_folder
from tests.embedded.user import REPOSITORY

if TYPE_CHECKING:
    from pathlib import Path

HOME = pwd.getpwuid(os.geteuid()).pw_dir
ROOT = os.geteuid() == 0


def test_a_path_is_taken_as_it_is() -> None:
    """Only `~` at the start is special; percent signs, question marks and spaces are not."""
    assert data_folder("embedded:/srv/a b%20c?d=e&f#g") == "/srv/a b%20c?d=e&f#g"


def test_a_relative_path_starts_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`embedded:pg` is the folder pg in the current one."""
    monkeypatch.chdir(tmp_path)
    assert data_folder("embedded:pg") == str(tmp_path.resolve() / "pg")


def test_links_are_resolved(tmp_path: Path) -> None:
    """Two names of one folder mean one cluster."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert data_folder(f"embedded:{tmp_path}/link/pg") == data_folder(f"embedded:{tmp_path}/real/pg")


def test_leading_slashes_make_no_second_name() -> None:
    """`embedded://srv/pg` and `embedded:///srv/pg`, as people write URLs, are `/srv/pg`."""
    assert {data_folder(f"embedded:{slashes}srv/pg") for slashes in ("/", "//", "///")} == {"/srv/pg"}


def test_the_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` is HOME."""
    monkeypatch.setenv("HOME", "/home/somebody")
    assert data_folder("embedded:~/pg") == "/home/somebody/pg"


def test_without_home_the_account_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """HOME unset, as under some service managers: the home folder of the account."""
    monkeypatch.delenv("HOME", raising=False)
    assert data_folder("embedded:~/pg") == os.path.realpath(f"{HOME}/pg")


def test_an_unknown_home_is_a_refusal() -> None:
    """A `~name` that nobody has is not a folder of that name."""
    with pytest.raises(EmbeddedError, match="not known; set HOME"):
        data_folder("embedded:~no-such-account/pg")


@pytest.mark.parametrize("data_home", ["", "/srv/data", "relative"])
def test_the_default_is_the_data_folder_of_the_user(
    data_home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_DATA_HOME if it is an absolute path, else ~/.local/share; for root one place; never the current folder's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_DATA_HOME", data_home)
    base = "/var/lib" if ROOT else "/srv/data" if data_home == "/srv/data" else "/home/somebody/.local/share"
    assert data_folder("embedded:") == f"{base}/checkpoint-manager/pg"


@pytest.mark.parametrize("path", ["/srv/a\0b", "/srv/a\nb", "/srv/a\x7fb"])
def test_a_control_character_is_a_refusal(path: str) -> None:
    """PostgreSQL's own files have one path a line."""
    with pytest.raises(EmbeddedError, match="control character"):
        data_folder(f"embedded:{path}")


def test_another_kind_of_url_is_not_taken_for_a_path() -> None:
    """A mistake in the program is a ValueError, which does not repeat the URL with its password."""
    with pytest.raises(ValueError, match=r"^not an embedded: URL$"):
        data_folder("postgresql://user:secret@host/db")


def test_knowing_the_folder_loads_nothing_heavy() -> None:
    """A start that needs no PostgreSQL does not pay for the launcher."""
    program = "import sys; from checkpoint.embedded import data_folder; data_folder('embedded:'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=REPOSITORY)
    assert {"checkpoint.embedded.server", "psycopg", "subprocess", "socket"}.isdisjoint(loaded.stdout.split())
