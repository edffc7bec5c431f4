"""How the server is set up, what it keeps of its starter, and who can reach it."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from checkpoint.embedded import EmbeddedServer, server_log
from tests.embedded.user import FAST, running_pid

if TYPE_CHECKING:
    from tests.embedded.conftest import NewUser

ROOT = os.geteuid() == 0
PROMISED = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "data_checksums": "on",
    "server_encoding": "UTF8",
    "listen_addresses": "",
    "max_connections": "100",
    "TimeZone": "UTC",
}
LIBPQ = {"PGHOST": "nohost", "PGPORT": "5999", "PGUSER": "x", "PGDATABASE": "y", "PGOPTIONS": "-c x=y"}
POSTGRES = {"PGDATA": "/nonexistent", "PGTZ": "Mars/Olympus", "TZ": "Mars/Olympus"}
ODD_ENVIRONMENTS: dict[str, dict[str, str | None]] = {
    "another locale, no home": {"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "LANGUAGE": "tr", "HOME": None},
    "a locale that is none": {"LC_CTYPE": "UTF-8", "LC_ALL": None, "LANG": "", "TMPDIR": "/nonexistent"},
    "settings of PostgreSQL": {**LIBPQ, **POSTGRES, "HOME": "/nonexistent"},
}


def test_it_is_durable_by_itself(cluster: Path, user: NewUser) -> None:
    """Unless told otherwise, what was committed survives a power cut; and nobody reaches it over the network."""
    plain = user(cluster, settings={})
    plain.answer()
    assert {name: plain.sql(f"SHOW {name}") for name in PROMISED} == PROMISED
    plain.leave()


def test_settings_are_passed_on(cluster: Path, user: NewUser) -> None:
    """A caller may choose otherwise."""
    chosen = {"fsync": "off", "max_connections": "20", "application_name": "it's = a test"}
    fast = user(cluster, settings=chosen)
    fast.answer()
    assert {name: fast.sql(f"SELECT reset_val FROM pg_settings WHERE name = '{name}'") for name in chosen} == chosen
    fast.leave()


@pytest.mark.parametrize("env", ODD_ENVIRONMENTS.values(), ids=ODD_ENVIRONMENTS)
def test_the_environment_of_the_starter_changes_nothing(env: dict[str, str | None], place: Path, user: NewUser) -> None:
    """A cluster made and started under odd variables is like any other: UTF8, its own locale, UTC."""
    odd = user(place / "pg", env=env)
    url = odd.answer()
    with psycopg.connect(url, autocommit=True) as connection:
        made = connection.execute(
            "SELECT upper('\u00e9'), datcollate, pg_encoding_to_char(encoding), current_setting('TimeZone')"
            " FROM pg_database WHERE datname = 'postgres'"
        )
        assert made.fetchone() == ("\u00c9", "C", "UTF8", "UTC")
    odd.leave()


def test_it_keeps_no_secret_and_no_pipe_of_its_starter(cluster: Path, user: NewUser) -> None:
    """It may outlive its starter: it has neither its environment, nor its standard streams, nor its working folder."""
    starter = user(cluster, env={"CHECKPOINT_APPROVAL_SECRET": "secret", "SOME_TOKEN": "secret"})
    starter.answer()
    process = Path(f"/proc/{running_pid(cluster)}")
    assert b"secret" not in (process / "environ").read_bytes()
    opened = {os.readlink(entry) for entry in (process / "fd").iterdir() if entry.exists()}
    inherited = {name for name in opened if not name.startswith(("socket:", "anon_inode:", "/dev/null", str(cluster)))}
    pipes = {name for name in inherited if name.startswith("pipe:")}
    starters = {os.readlink(entry) for entry in Path(f"/proc/{starter.process.pid}/fd").iterdir() if entry.exists()}
    assert not pipes & starters
    assert inherited - pipes == set()
    starter.leave()


@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_folders_and_files_are_private_whatever_the_umask(umask: int, place: Path, user: NewUser) -> None:
    """Folders 0700, files 0600; for root, folders above the cluster may be passed by the server's account, not read."""
    folder = place / "above" / "pg"
    private = user(folder, umask=umask)
    private.answer()
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in folder.parent.iterdir()}
    assert modes == {"pg": 0o700, "pg.log": 0o600, **{f"pg.{name}.lock": 0o600 for name in ("start", "use", "run")}}
    assert stat.S_IMODE(folder.parent.stat().st_mode) == (0o711 if ROOT else 0o700)
    private.leave()


def test_the_log_does_not_grow_without_end(cluster: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a start a large log gives way, and the one before it is gone."""
    monkeypatch.setattr(server_log, "LARGEST", 1000)
    server = EmbeddedServer(cluster, settings=FAST)
    for content in ("the first\n", "the second\n"):
        (place / "pg.log").write_text(content * 200)
        server.acquire()
        server.release()
    assert "the second" in (place / "pg.log.1").read_text()
    assert "PostgreSQL" in (place / "pg.log").read_text()
    assert not [entry for entry in place.glob("pg.log*") if "the first" in entry.read_text()]


def test_users_leave_no_complaints_in_the_log(cluster: Path, place: Path, user: NewUser) -> None:
    """Asking a running server whether it serves is not an event for its log."""
    users = [user(cluster)]
    users[0].answer()
    before = (place / "pg.log").read_text()
    users += [user(cluster) for _ in range(3)]
    for each in users[1:]:
        each.answer()
    assert (place / "pg.log").read_text() == before
    for each in users:
        each.leave()


def test_what_takes_time_is_told(place: Path) -> None:
    """The making of a cluster and the start are announced; joining is not."""
    told: list[str] = []
    first = EmbeddedServer(place / "pg", settings=FAST, notify=told.append)
    first.acquire()
    assert told[:2] == [f"making a new PostgreSQL cluster in {place}/pg", f"starting PostgreSQL in {place}/pg"]
    told.clear()
    second = EmbeddedServer(place / "pg", settings=FAST, notify=told.append)
    second.acquire()
    assert told == []
    second.release()
    first.release()
