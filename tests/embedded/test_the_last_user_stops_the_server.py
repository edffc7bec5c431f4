"""Users share one server; it starts with the first and stops with the last, however they come and go."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from typing import TYPE_CHECKING

import pytest

from checkpoint.embedded import EmbeddedServer
from tests.embedded.user import FAST, freeze, running_pid, server_pid, wait_for

if TYPE_CHECKING:
    from pathlib import Path

    from tests.embedded.conftest import NewUser
    from tests.embedded.user import User

COMERS, AT_ONCE = 16, 3


def test_one_user_starts_and_stops_it(cluster: Path, user: NewUser) -> None:
    """What one user wrote the next one reads, and between them no server runs."""
    first = user(cluster)
    first.answer()
    first.send("sql", "CREATE TABLE kept AS SELECT 42 AS value")
    first.answer()
    assert first.leave() == 0
    assert server_pid(cluster) is None
    second = user(cluster)
    second.answer()
    assert second.sql("SELECT value FROM kept") == 42
    assert second.leave() == 0


def test_it_stops_with_the_last_of_several(cluster: Path, user: NewUser) -> None:
    """The one who started it may leave first; the others keep the same server."""
    starter, other = user(cluster), None
    starter.answer()
    pid = running_pid(cluster)
    other = user(cluster)
    other.answer()
    starter.leave()
    assert running_pid(cluster) == pid
    assert other.sql("SELECT 1") == 1
    other.leave()
    assert server_pid(cluster) is None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_user_leaves_it_to_the_next(number: signal.Signals, cluster: Path, user: NewUser) -> None:
    """A user that ends without a word leaves the server up; the next one takes that very server over and stops it."""
    killed = user(cluster)
    killed.answer()
    pid = running_pid(cluster)
    killed.process.send_signal(number)
    killed.process.wait()
    assert running_pid(cluster) == pid
    heir = user(cluster)
    heir.answer()
    assert running_pid(cluster) == pid
    heir.leave()
    assert server_pid(cluster) is None


def test_an_interrupted_user_stops_it(cluster: Path, user: NewUser) -> None:
    """Ctrl-C reaches the user, which releases, and not the server, which lives in a session of its own."""
    interrupted = user(cluster)
    interrupted.answer()
    assert os.getsid(running_pid(cluster)) == running_pid(cluster)
    interrupted.process.send_signal(signal.SIGINT)
    interrupted.process.wait()
    assert server_pid(cluster) is None


def test_first_starts_at_once_are_one_start(place: Path, user: NewUser) -> None:
    """Eight users of a folder that does not exist yet find themselves on one server."""
    users = [user(place / "pg") for _ in range(8)]
    assert len({each.answer() for each in users}) == 1
    assert len({each.sql("SELECT pg_postmaster_start_time()::text") for each in users}) == 1
    assert [each.leave() for each in users] == [0] * 8
    assert server_pid(place / "pg") is None


def test_users_that_come_and_go_never_lack_it(cluster: Path, user: NewUser) -> None:
    """Starts, joins, stops and kills in any order: who has acquired can connect until it releases."""
    chance = random.Random(1)
    present: list[User] = []
    for still_to_leave in range(COMERS, 0, -1):
        while len(present) < min(AT_ONCE, still_to_leave):
            present.append(user(cluster))
        leaver = present.pop(chance.randrange(len(present)))
        leaver.answer()
        assert leaver.sql("SELECT 1") == 1
        if chance.random() < 0.2:
            leaver.kill()
        else:
            leaver.input.close()  # it may stop the server while others come
    last = user(cluster)
    last.answer()
    last.leave()
    wait_for(lambda: server_pid(cluster) is None, "the last user did not stop the server")


def test_acquiring_again_is_one_use(cluster: Path) -> None:
    """A second acquire gives the same URL; one release ends the use, a second one is nothing."""
    server = EmbeddedServer(cluster, settings=FAST)
    assert server.acquire() == server.acquire()
    running_pid(cluster)
    server.release()
    assert server_pid(cluster) is None
    server.release()


def test_released_it_can_be_acquired_again(cluster: Path) -> None:
    """One object serves for any number of uses."""
    server = EmbeddedServer(cluster, settings=FAST)
    for _ in range(2):
        server.acquire()
        running_pid(cluster)
        server.release()
        assert server_pid(cluster) is None


def test_objects_of_one_process_are_users_of_their_own(cluster: Path) -> None:
    """The use of one object does not end with that of another."""
    one, other = EmbeddedServer(cluster, settings=FAST), EmbeddedServer(cluster, settings=FAST)
    one.acquire()
    other.acquire()
    one.release()
    running_pid(cluster)
    other.release()
    assert server_pid(cluster) is None


def test_threads_may_share_an_object(cluster: Path) -> None:
    """Threads that acquire at once through one object get one URL."""
    server = EmbeddedServer(cluster, settings=FAST)
    urls: list[str] = []
    threads = [threading.Thread(target=lambda: urls.append(server.acquire())) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(urls) == 6
    assert len(set(urls)) == 1
    server.release()
    assert server_pid(cluster) is None


def test_a_forked_child_is_no_user(cluster: Path) -> None:
    """A child that was forked off neither ends its parent's use nor prolongs it."""
    server = EmbeddedServer(cluster, settings=FAST)
    server.acquire()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        server.release()
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    running_pid(cluster)
    server.release()
    assert server_pid(cluster) is None
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0


def test_a_user_comes_while_the_last_one_stops_it(cluster: Path, user: NewUser) -> None:
    """Who comes during the stop waits for its end and starts the server anew."""
    leaving = user(cluster)
    leaving.answer()
    pid = running_pid(cluster)
    freeze(pid)
    leaving.send("release")
    coming = user(cluster)
    time.sleep(0.3)  # time to reach the wait; too short a time would only make the test easier
    os.kill(pid, signal.SIGCONT)
    leaving.answer()
    coming.answer()
    assert running_pid(cluster) != pid
    assert coming.leave() == 0
