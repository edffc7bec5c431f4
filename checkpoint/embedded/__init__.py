"""A PostgreSQL server of the product's own, for `DATABASE_URL=embedded:` (contract, section 6).

EmbeddedServer is imported when it is first named: a worker that only needs to know the folder starts without it.
"""

from typing import TYPE_CHECKING

from checkpoint.embedded.error import EmbeddedError
from checkpoint.embedded.folder import data_folder

if TYPE_CHECKING:
    from checkpoint.embedded.server import EmbeddedServer

__all__ = ["EmbeddedError", "EmbeddedServer", "data_folder"]


def __getattr__(name: str) -> object:
    if name != "EmbeddedServer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from checkpoint.embedded.server import EmbeddedServer

    return EmbeddedServer
