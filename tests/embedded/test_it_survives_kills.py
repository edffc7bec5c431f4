"""After a kill at any moment the next acquire has the server, and every committed row, again."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkpoint.embedded import EmbeddedError, EmbeddedServer, postmaster, server, unix_socket
from tests.embedded.user import FAST, alive, freeze, give_like, process_status, running_pid, server_pid, wait_for

if TYPE_CHECKING:
    from tests.embedded.conftest import NewUser

KILLS = 3
# A commit waits for the system to take it over, which a kill cannot undo; only a power cut could.
SAFE_FROM_KILLS = {"fsync": "off"}
BUSY = "SELECT count(*) FROM generate_series(1, 20000) a, generate_series(1, 1000) b"


def test_the_server_is_killed_again_and_again(cluster: Path, user: NewUser) -> None:
    """The server process and its user get kill -9: each next user finds all rows of those before."""
    for kills in range(KILLS):
        victim = user(cluster, settings=SAFE_FROM_KILLS)
        victim.answer()
        victim.send("sql", "CREATE TABLE IF NOT EXISTS killed AS SELECT 0 AS value WHERE false")
        victim.answer()
        assert victim.sql("SELECT count(*) FROM killed") == kills
        victim.send("sql", "INSERT INTO killed VALUES (1)")
        victim.answer()
        os.kill(running_pid(cluster), signal.SIGKILL)
        victim.kill()
    last = user(cluster)
    last.answer()
    assert last.sql("SELECT count(*) FROM killed") == KILLS
    last.leave()
    assert server_pid(cluster) is None


def test_a_user_has_it_again_by_acquiring_again(cluster: Path) -> None:
    """The server dies under a user: its next acquire starts it, and its release stops it."""
    user = EmbeddedServer(cluster, settings=FAST)
    url = user.acquire()
    pid = running_pid(cluster)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid), "the server did not die")
    assert user.acquire() == url
    assert running_pid(cluster) != pid
    user.release()
    assert server_pid(cluster) is None


def test_a_dead_server_can_be_released(cluster: Path) -> None:
    """There is nothing to stop, and nothing is wrong."""
    user = EmbeddedServer(cluster, settings=FAST)
    user.acquire()
    os.kill(running_pid(cluster), signal.SIGKILL)
    user.release()
    user.acquire()
    user.release()
    assert server_pid(cluster) is None


def test_a_backend_outlives_the_killed_server(cluster: Path, user: NewUser) -> None:
    """A backend at work does not see at once that its server was killed: the next start waits until it is gone."""
    victim, watcher = user(cluster), user(cluster)
    victim.answer()
    watcher.answer()
    assert watcher.sql("SELECT 1") == 1
    victim.send("sql", BUSY)
    at_work = f"SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query = '{BUSY}'"
    wait_for(lambda: bool(watcher.sql(at_work) == 1), "the query did not begin")
    os.kill(running_pid(cluster), signal.SIGKILL)
    victim.kill()
    watcher.send("acquire")
    watcher.answer()
    assert watcher.sql("SELECT 1") == 1
    watcher.leave()
    assert server_pid(cluster) is None


def test_initdb_is_killed(place: Path, user: NewUser) -> None:
    """A kill in the middle of the making of a cluster leaves no half of one, and the next user makes it."""
    folder, unfinished = place / "pg", place / "pg.initdb-unfinished"
    victim = user(folder)
    wait_for((unfinished / "cluster" / "base").exists, "initdb did not begin")
    children = [task / "children" for task in Path(f"/proc/{victim.process.pid}/task").iterdir()]
    initdb = " ".join(file.read_text() for file in children).split()
    assert initdb
    victim.kill()
    for child in initdb:
        os.kill(int(child), signal.SIGKILL)
    assert not folder.exists()
    heir = user(folder)
    heir.answer()
    assert heir.sql("SELECT 1") == 1
    assert not unfinished.exists()
    heir.leave()


def test_the_starter_is_killed_while_initdb_goes_on(place: Path, user: NewUser) -> None:
    """An initdb whose starter is dead is waited for and cleared away, not disturbed."""
    folder, unfinished = place / "pg", place / "pg.initdb-unfinished"
    victim = user(folder)
    wait_for((unfinished / "cluster" / "base").exists, "initdb did not begin")
    victim.kill()
    heir = user(folder)
    heir.answer()
    assert heir.sql("SELECT 1") == 1
    assert not unfinished.exists()
    heir.leave()


def test_the_starter_is_killed_while_the_server_starts(cluster: Path, user: NewUser) -> None:
    """A server whose starter did not live to see it up is joined, not started twice."""
    victim = user(cluster)
    wait_for(lambda: server_pid(cluster) is not None, "the server did not begin to start")
    pid = running_pid(cluster)
    victim.kill()
    heir = user(cluster)
    heir.answer()
    assert running_pid(cluster) == pid
    heir.leave()
    assert server_pid(cluster) is None


def test_the_stopper_is_killed(cluster: Path, user: NewUser) -> None:
    """A server that was told to stop by a user that is dead now is waited for and started anew."""
    victim = user(cluster)
    victim.answer()
    pid = running_pid(cluster)
    freeze(pid)
    victim.send("release")
    wait_for(lambda: _is_told_to_stop(pid), "the user did not stop the server")
    victim.kill()
    heir = user(cluster)
    time.sleep(0.3)  # time to find the server silent; too short a time would only make the test easier
    os.kill(pid, signal.SIGCONT)
    heir.answer()
    assert heir.sql("SELECT 1") == 1
    heir.leave()
    assert server_pid(cluster) is None


def test_the_pid_file_names_another_process(cluster: Path, user: NewUser) -> None:
    """After a reboot the old number may be anybody's: that process is neither taken for the server nor signalled."""
    bystander = subprocess.Popen(["sleep", "100"])
    _write_pid_file(cluster, f"{bystander.pid}\n{cluster}\n1700000000\n5432\n{cluster}\n\n  1 2\nready   \n")
    heir = user(cluster)
    heir.answer()
    heir.leave()
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


@pytest.mark.parametrize(
    "content", ["", "\n", "999999999\n", "999999\n/nowhere\n1700000000\n5432\n", "\0\0\0\0", "0\n"]
)
def test_the_pid_file_is_damaged(content: str, cluster: Path, user: NewUser) -> None:
    """An empty, short or garbled pid file, as a power cut leaves, does not stand in the way."""
    _write_pid_file(cluster, content)
    _write(cluster, ".s.PGSQL.5432.lock", content)
    heir = user(cluster)
    heir.answer()
    assert heir.sql("SELECT 1") == 1
    heir.leave()
    assert server_pid(cluster) is None


def test_a_lost_socket_is_made_again(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody deletes the socket of the running server: it is started anew."""
    monkeypatch.setattr(server, "LOST_SOCKET", 0.2)
    told: list[str] = []
    user = EmbeddedServer(cluster, settings=FAST, notify=told.append)
    user.acquire()
    pid = running_pid(cluster)
    (cluster / ".s.PGSQL.5432").unlink()
    user.acquire()
    assert running_pid(cluster) != pid
    assert any("is lost" in sentence for sentence in told)
    user.release()
    assert server_pid(cluster) is None


def test_a_frozen_server_is_a_refusal(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is stopped by a signal does not hang its users; when it goes on, they have it again."""
    monkeypatch.setattr(unix_socket, "SILENCE", 0.3)
    first, second = EmbeddedServer(cluster, settings=FAST), EmbeddedServer(cluster, settings=FAST)
    first.acquire()
    pid = running_pid(cluster)
    freeze(pid)
    for user in (first, second):
        with pytest.raises(EmbeddedError, match=rf"process {pid}\) does not answer"):
            user.acquire()
    os.kill(pid, signal.SIGCONT)
    second.acquire()
    assert running_pid(cluster) == pid
    second.release()
    assert server_pid(cluster) is None


def test_the_stop_of_a_frozen_server_is_bounded(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release does not wait for ever; the server obeys when it can, and the next user is served."""
    monkeypatch.setattr(postmaster, "STOPS", ((signal.SIGINT, 0.2), (signal.SIGQUIT, 0.2)))
    user = EmbeddedServer(cluster, settings=FAST)
    user.acquire()
    pid = running_pid(cluster)
    freeze(pid)
    user.release()
    assert running_pid(cluster) == pid
    os.kill(pid, signal.SIGCONT)
    user.acquire()
    assert running_pid(cluster) != pid
    user.release()


def test_a_start_out_of_patience_goes_on(cluster: Path, user: NewUser) -> None:
    """A start that takes longer than its starter's patience is a refusal, and not broken off: the next user joins it."""
    impatient = EmbeddedServer(cluster, settings=FAST, start_timeout=0.0)
    with pytest.raises(EmbeddedError, match="was not ready after 0 s"):
        impatient.acquire()
    wait_for(lambda: server_pid(cluster) is not None, "the start was broken off")
    pid = running_pid(cluster)
    heir = user(cluster)
    heir.answer()
    assert running_pid(cluster) == pid
    heir.leave()
    assert server_pid(cluster) is None


def _write_pid_file(cluster: Path, content: str) -> None:
    _write(cluster, "postmaster.pid", content)


def _write(cluster: Path, name: str, content: str) -> None:
    (cluster / name).write_text(content)
    give_like(cluster / name, cluster)


def _is_told_to_stop(pid: int) -> bool:
    return bool(int(process_status(pid)["ShdPnd"], 16) & 1 << signal.SIGINT - 1)
