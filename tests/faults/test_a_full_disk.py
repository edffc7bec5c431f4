"""A disk of PostgreSQL's that is full stops writes, truthfully, and nothing else (contract, section 4)."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.faults.actions import KEY, READS, save, serves, works

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import Here
    from tests.support.own_server import OwnServer, OwnServers

LARGE = "".join(f"{number:x}" for number in range(900_000))  # does not compress to less than the disk holds
FULL = """
CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF length(new.state_data::text) > 1000000 THEN
        RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100';
    END IF;
    RETURN new;
END $$;
CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {schema}.workflow_checkpoints
FOR EACH ROW EXECUTE FUNCTION {schema}.full()"""


@pytest.fixture
def small_disk(own_servers: OwnServers, server: OwnServer) -> Iterator[Path | None]:
    """A file system of 2 MiB that the server may use for a tablespace; None where this account cannot mount one."""
    place = own_servers.place("small-disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        yield None
        return
    own_servers.give(place)
    try:
        yield place
    finally:
        server.query("DROP TABLESPACE IF EXISTS small")
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_writes_fail_while_the_disk_is_full_and_work_when_there_is_room(
    here: Here, server: OwnServer, own_schema: str, small_disk: Path | None
) -> None:
    """SQLSTATE 53100: PG_WRITE_ERROR, the old state stands, reads go on; with room made the same worker saves."""
    worker = here()
    assert save(worker, 1)["success"]
    table = f"{own_schema}.workflow_checkpoints"
    if small_disk is None:
        server.query(FULL.format(schema=own_schema))
    else:
        server.query(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
        server.query(f"ALTER TABLE {table} SET TABLESPACE small")
    large = {"action": "save", **KEY, "state_data": {"large": LARGE}}
    for _ in range(2):
        answer = worker.request(large)
        assert answer["code"] == "PG_WRITE_ERROR"
        assert "53100" in answer["error"]
    for action in READS:
        works(worker, action)
    got = worker.request({"action": "get", **KEY})["data"]
    assert (got["state_data"], got["revision"]) == ({"n": 1}, 1)
    if small_disk is None:
        server.query(f"DROP TRIGGER full_disk ON {table}")
    else:
        server.query(f"ALTER TABLE {table} SET TABLESPACE pg_default")
    assert worker.request(large)["data"]["revision"] == 2
    serves(worker)
