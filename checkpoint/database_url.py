"""What DATABASE_URL leads to, read without libpq, so that a cache hit need not load it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from checkpoint.settings import EMBEDDED_PREFIX, POSTGRES_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Mapping

_PLACE = {"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT", "dbname": "PGDATABASE", "service": "PGSERVICE"}


def source_of(database_url: str | None, schema: str, environ: Mapping[str, str]) -> str:
    """A digest of hosts, ports, database and schema, the same for every spelling with equal parts; '' for no URL.

    User and password are not part of it. It is what tells the cache's entries of one authority from another's.
    """
    if not database_url:
        return ""
    if database_url.startswith(EMBEDDED_PREFIX):
        from checkpoint.embedded import data_folder

        place = [EMBEDDED_PREFIX, data_folder(database_url)]
    else:
        parts = (
            _parts_of_url(database_url) if database_url.startswith(POSTGRES_PREFIXES) else _parts_of_pairs(database_url)
        )
        place = [parts.get(key) or environ.get(variable, "") for key, variable in _PLACE.items()]
        place[3] = place[3] or parts.get("user") or environ.get("PGUSER", "")
    return _digest("\0".join([*place, schema]))


def _digest(text: str) -> str:
    from hashlib import sha256

    return sha256(os.fsencode(text)).hexdigest()[:32]


def _parts_of_url(url: str) -> dict[str, str]:
    from urllib.parse import parse_qsl, unquote

    rest = url.split("://", 1)[1].split("#", 1)[0]
    rest, _, query = rest.partition("?")
    authority, _, database = rest.partition("/")
    user, _, hosts = authority.rpartition("@")
    parts = {"user": unquote(user.partition(":")[0]), "dbname": unquote(database)}
    names, ports = [], []
    for host in hosts.split(","):
        name, colon, port = host.rpartition(":")
        if not colon or host.endswith("]"):  # an address in brackets has colons of its own
            name, port = host, ""
        names.append(unquote(name).strip("[]"))
        ports.append(port)
    parts["host"], parts["port"] = ",".join(names).strip(","), ",".join(ports).strip(",")
    parts.update(parse_qsl(query))
    return parts


def _parts_of_pairs(text: str) -> dict[str, str]:
    """Parts of the `key = value` form: values may be quoted, a backslash takes the next character as it is."""
    import re

    pairs = re.findall(r"(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)", text)
    return {key: re.sub(r"\\(.)", r"\1", value.strip("'") if value[:1] == "'" else value) for key, value in pairs}
