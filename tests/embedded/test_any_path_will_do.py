"""Paths that trip up URLs, socket names and configuration files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from tests.embedded.user import moved, running_pid, server_pid

if TYPE_CHECKING:
    from tests.embedded.conftest import NewUser

ODD = {
    "spaces": "with space ",
    "quotes": "q'uo\"te",
    "percent": "perc%20\u00e9nt",
    "of a URL": "a&b?c=d#e@f:g",
    "of a list": "one,two",
    "of a shell": "back\\slash $HOME `x`",
    "of an option": "-D",
    "very long": f"{'x' * 60}/{'y' * 60}/{'z' * 40}",
}


@pytest.mark.parametrize("name", ODD.values(), ids=ODD)
def test_an_odd_path_serves(name: str, place: Path, cluster: Path, user: NewUser) -> None:
    """The server starts in a folder of that name, is joined there, and takes its socket away when it stops."""
    (place / name).parent.mkdir(parents=True, exist_ok=True)
    with moved(cluster, place / name) as folder:
        users = [user(folder), user(folder)]
        urls = {each.answer() for each in users}
        assert users[1].sql("SHOW data_directory") == str(folder)
        for each in users:
            assert each.leave() == 0
        assert server_pid(folder) is None
        socket_folder = Path(unquote(urls.pop().partition("host=")[2].partition("&")[0]))
        assert not urls
        assert socket_folder == folder or not socket_folder.exists()
        assert not list(folder.glob(".s.PGSQL*"))


def test_a_link_is_the_same_cluster(cluster: Path, place: Path, user: NewUser) -> None:
    """Users of a folder and users of a link to it share one server."""
    (place / "link").symlink_to(cluster)
    direct, linked = user(cluster), user(place / "link")
    assert direct.answer() == linked.answer()
    assert direct.leave() == linked.leave() == 0
    assert server_pid(cluster) is None


def test_a_relative_path_starts_at_the_current_folder(cluster: Path, user: NewUser) -> None:
    """A relative folder is that of the moment when the object is made."""
    relative = user("pg")
    relative.answer()
    running_pid(cluster)
    relative.leave()


def test_a_link_to_nothing_yet_leads_to_the_new_cluster(place: Path, user: NewUser) -> None:
    """The cluster is made where the link points, and the link stays."""
    (place / "link").symlink_to("target")
    first = user(place / "link")
    first.answer()
    first.leave()
    assert (place / "link").is_symlink()
    assert (place / "target" / "PG_VERSION").exists()


def test_a_moved_folder_is_joined_where_it_is(cluster: Path, user: NewUser) -> None:
    """The folder is renamed under a running server: there is still only one server on it."""
    first = user(cluster)
    first.answer()
    pid = running_pid(cluster)
    with moved(cluster, cluster.with_name("moved")) as folder:
        second = user(folder)
        second.answer()
        assert running_pid(folder) == pid
        assert second.sql("SELECT 1") == 1
        second.leave()
        assert server_pid(folder) is None
    first.leave()
