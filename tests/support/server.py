"""One PostgreSQL for a run of the tests."""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from testcontainers.community.postgres import PostgresContainer

IMAGE = "postgres:18-alpine"
UNIX = "unix://"
LOCAL_ENGINE = "unix:///var/run/docker.sock"
UNSAFE_BUT_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
NEEDS_DOCKER = """\
these tests were told to run on a container (--containers), and that cannot be: {reason}
They need a Docker engine that this account may use (`docker info` must succeed; DOCKER_HOST is heeded) and the image
{image}, pulled or made beforehand (CHECKPOINT_TEST_IMAGE names another one). testcontainers wants one more image, to
clean up after a crash; TESTCONTAINERS_RYUK_DISABLED=true does without.
Where there is no Docker, `make test` runs the same tests on the PostgreSQL server that the product brings along."""


class Server(NamedTuple):
    """A PostgreSQL that runs: its libpq URL, and which one it is, for people."""

    url: str
    about: str


class NoContainer(Exception):
    """A container was insisted on and is not to be had; the message says what is needed."""


@contextmanager
def postgresql(folder: Path, *, insist_on_container: bool) -> Iterator[Server]:
    """A server for the run; it ends with the block.

    The first of: TEST_DATABASE_URL; a container, where a Docker engine answers; the embedded server in `folder`, which
    the processes of one run share. With `insist_on_container` it is a container, else NoContainer is raised.
    """
    given = os.environ.get("TEST_DATABASE_URL")
    if given and not insist_on_container:
        yield Server(given, "the one of TEST_DATABASE_URL")
        return
    container, reason = _start_container()
    if container is not None:
        try:
            yield Server(container.get_connection_url(), f"a container of {_image()}")
        finally:
            container.stop()
        return
    if insist_on_container:
        raise NoContainer(NEEDS_DOCKER.format(reason=reason, image=_image()))
    with _embedded(folder) as url:
        yield Server(url, f"the embedded server: {reason}")


def _image() -> str:
    return os.environ.get("CHECKPOINT_TEST_IMAGE", IMAGE)


def _start_container() -> tuple[PostgresContainer | None, str]:
    """A started container, or None and why not."""
    reason = _why_no_engine()
    if reason is not None:
        return None, reason
    from docker.errors import DockerException  # type: ignore[import-untyped]
    from testcontainers.community.postgres import PostgresContainer

    options = [word for name, value in UNSAFE_BUT_FAST.items() for word in ("-c", f"{name}={value}")]
    container = PostgresContainer(_image(), driver=None).with_command(["postgres", *options])
    try:
        return container.start(), ""
    except DockerException as error:
        container.stop()
        return None, f"Docker cannot run {_image()} ({error})"


def _why_no_engine() -> str | None:
    """None where a Docker engine answers within three seconds. A local one is tried without loading any client."""
    host = os.environ.get("DOCKER_HOST", LOCAL_ENGINE)
    if host.startswith(UNIX):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(3)
            try:
                probe.connect(host.removeprefix(UNIX))
            except OSError as error:
                return f"no Docker engine answers at {host} ({error.strerror})"
    import docker  # type: ignore[import-untyped]
    from docker.errors import DockerException

    try:
        docker.from_env(timeout=3).ping()
    except DockerException as error:
        return f"no Docker engine answers at {host} ({error})"
    return None


@contextmanager
def _embedded(folder: Path) -> Iterator[str]:
    from checkpoint.embedded import EmbeddedServer

    server = EmbeddedServer(folder, settings=UNSAFE_BUT_FAST)
    url = server.acquire()
    try:
        yield url
    finally:
        server.release()
