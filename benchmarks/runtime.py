"""The product's parts in this process, without the pipe."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from checkpoint import settings
from checkpoint.log import Log
from checkpoint.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.servers import Server


@contextmanager
def runtime_on(server: Server, data_dir: str) -> Iterator[Runtime]:
    """What a worker on that server and data folder works with."""
    environment = {"DATABASE_URL": server.url, "CHECKPOINT_DATA_DIR": data_dir}
    loaded = settings.load(environment)
    runtime = Runtime(loaded, environment, Log(loaded.log_level))
    try:
        yield runtime
    finally:
        runtime.close()
