"""Roles of PostgreSQL that are bound to tenants, or to none. Fixtures for a conftest."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker
    from tests.tenants.conftest import Tenants

PASSWORD = "of a test"
# What docs/operations.md gives to a role of a worker.
GRANTS = (
    "USAGE ON SCHEMA {schema}",
    "SELECT, INSERT, UPDATE, DELETE ON {schema}.workflow_checkpoints",
    "SELECT ON {schema}.workflow_checkpoint_store, {schema}.workflow_checkpoint_migrations",
)


class Roles:
    """Roles of this test in the schema of the test, and how a worker or a connection becomes one of them."""

    def __init__(self, admin: Connection, url: str, schema: str) -> None:
        self._admin = admin
        self._url = url
        self._schema = schema
        self.made: list[str] = []

    def new(self, *tenants: str) -> str:
        """A role with the grants of a worker, bound to these tenants; with none it is not bound."""
        name = f"test_{uuid.uuid4().hex[:12]}"
        self._admin.execute(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
        self.made.append(name)
        for grant in GRANTS:
            self._admin.execute(f"GRANT {grant.format(schema=self._schema)} TO {name}")
        for tenant in tenants:
            self._admin.execute(f"INSERT INTO {self._schema}.workflow_tenant_roles VALUES (%s, %s)", (name, tenant))
        return name

    def url(self, role: str) -> str:
        """The connection string of the test's server as that role."""
        return make_conninfo(self._url, user=role, password=PASSWORD)

    @contextmanager
    def connection(self, role: str) -> Iterator[Connection]:
        """A connection as that role, in the schema of the test."""
        with psycopg.connect(self.url(role), autocommit=True) as connection:
            connection.execute(f"SET search_path TO {self._schema}")
            yield connection


class AsRole(Protocol):
    """Starts a worker as a role; `env` is added to its environment."""

    def __call__(self, role: str, **env: str) -> Worker:
        """A started worker."""


@pytest.fixture
def roles(admin: Connection, tenants: Tenants) -> Iterator[Roles]:
    """Makes roles; the rows of both tenants are there."""
    roles = Roles(admin, str(tenants.settings["DATABASE_URL"]), str(tenants.settings["CHECKPOINT_SCHEMA"]))
    yield roles
    for name in roles.made:
        admin.execute(f"DROP OWNED BY {name}")
        admin.execute(f"DROP ROLE {name}")


@pytest.fixture
def as_role(start_offline_worker: StartWorker, tenants: Tenants, roles: Roles, tmp_path: Path) -> AsRole:
    """Starts workers as a role, with a cache of its own, so that everything comes from PostgreSQL."""

    def start(role: str, **env: str) -> Worker:
        own = {"DATABASE_URL": roles.url(role), "CHECKPOINT_DATA_DIR": str(tmp_path / role)}
        return start_offline_worker({**tenants.settings, **own, **env})

    return start
