"""Where PostgreSQL is: DATABASE_URL as connection parameters, and in words without secrets (contract, section 6)."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import conninfo

from checkpoint.authority.failure import DatabaseUnusable, Unreachable
from checkpoint.folder import in_utf8
from checkpoint.settings import EMBEDDED_PREFIX

if TYPE_CHECKING:
    from collections.abc import Mapping

_HOSTS = re.compile(r"[A-Za-z0-9._:/,-]*").fullmatch
_PORTS = re.compile(r"[0-9]{1,5}(,[0-9]{1,5})*").fullmatch
_DATABASE = re.compile(r"[^=@/:\s]*").fullmatch
_SECRETS = ("password", "sslpassword", "passfile")


class Address:
    """The parameters of a connection. For `embedded:` the server is started, or joined, when they are asked for."""

    def __init__(self, database_url: str) -> None:
        self._url = database_url
        self._embedded: Any = None
        self._hosts: int | None = None
        self._several_by_service = False

    def parameters(self) -> dict[str, Any]:
        """What libpq is to be called with. Raises DatabaseUnusable."""
        try:
            parameters: dict[str, Any] = dict(conninfo.conninfo_to_dict(self._conninfo()))
        except (psycopg.Error, UnicodeError):  # its text repeats the string, password included
            raise DatabaseUnusable("DATABASE_URL cannot be read as a libpq connection string") from None
        if "," in _host(parameters) or self._several_by_service:
            parameters.setdefault("target_session_attrs", "read-write")
        parameters.setdefault("application_name", "checkpoint-manager")
        if self._is_embedded:
            parameters["hostaddr"] = ""  # whatever PGHOSTADDR says
        return parameters | {"client_encoding": "UTF8"}

    def hosts(self) -> int:
        """How many hosts a connection may try, one after the other."""
        if self._hosts is None:
            try:
                parameters = {} if self._is_embedded else conninfo.conninfo_to_dict(self._url)
            except (psycopg.Error, UnicodeError):
                parameters = {}
            self._hosts = 1 + _host(parameters).count(",")
        return self._hosts

    def has_more_hosts_than_known(self, connection: psycopg.Connection[Any], parameters: Mapping[str, Any]) -> bool:
        """Whether a service file gave several hosts, of which the first that answers may only read. Remembers them."""
        if self._several_by_service or "," in _host(parameters):
            return False
        resolved = {option.keyword: option.val or b"" for option in connection.pgconn.info}
        if b"," not in (resolved[b"host"] or resolved[b"hostaddr"]) or resolved[b"target_session_attrs"] != b"any":
            return False
        self._several_by_service = True
        self._hosts = 1 + (resolved[b"host"] or resolved[b"hostaddr"]).count(b",")
        return True

    def text(self) -> str | None:
        """Host, port and database, or the folder of an embedded server; None where secrets may be among them."""
        if self._is_embedded:
            from checkpoint import embedded

            return EMBEDDED_PREFIX + in_utf8(embedded.data_folder(self._url))
        try:
            return in_words(self.parameters())
        except DatabaseUnusable:
            return None

    def release(self) -> None:
        """Stops the server, if it is the product's own and nobody else uses it."""
        if self._embedded is not None:
            self._embedded.release()
            self._embedded = None

    @property
    def _is_embedded(self) -> bool:
        return self._url.startswith(EMBEDDED_PREFIX)

    def _conninfo(self) -> str:
        if not self._is_embedded:
            return self._url
        from checkpoint import embedded

        try:
            if self._embedded is None:
                self._embedded = embedded.EmbeddedServer(embedded.data_folder(self._url))
            server_url: str = self._embedded.acquire()
        except embedded.EmbeddedError as error:
            raise Unreachable(str(error)) from None
        return server_url


def secrets_of(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """What of the parameters must not be told."""
    return tuple(str(parameters[key]) for key in _SECRETS if parameters.get(key))


def in_words(parameters: Mapping[str, Any]) -> str | None:
    """Host, port and database; None where a part does not look like what it should be.

    A password that was not percent-encoded ends up, whole or in part, as host, port or database.
    """
    host = _host(parameters)
    port = str(parameters.get("port") or os.environ.get("PGPORT") or 5432)
    database = str(parameters.get("dbname") or parameters.get("user") or "")
    if not (_HOSTS(host) and _PORTS(port) and _DATABASE(database)):
        return None
    place = f"{host or 'the local socket'}, port {port}"
    return f"{place}, database {database}" if database else place


def _host(parameters: Mapping[str, Any]) -> str:
    return str(parameters.get("host") or parameters.get("hostaddr") or os.environ.get("PGHOST") or "")
