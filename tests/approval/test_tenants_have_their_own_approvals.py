"""A database role that is bound to a tenant asks and decides for that tenant alone (contract, sections 5 and 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from psycopg import sql as psql
from psycopg.conninfo import make_conninfo

from tests.approval.asking import ask, data_of, decide, request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker


@pytest.fixture
def everybody(start_worker: StartWorker) -> Worker:
    """A runner that is bound to nothing, and has made the tables."""
    worker = start_worker()
    assert worker.request({"action": "pending"})["success"]
    return worker


@pytest.fixture
def bound(
    start_worker: StartWorker, everybody: Worker, admin: Connection, sql: Connection, schema: str, database_url: str
) -> Iterator[Worker]:
    """A runner whose role is bound to the tenant acme by the table, not by a setting of the process."""
    names = {"role": psql.Identifier(schema), "schema": psql.Identifier(schema)}
    admin.execute(psql.SQL("CREATE ROLE {role} LOGIN PASSWORD 'role of a test'").format(**names))
    try:
        admin.execute(psql.SQL("GRANT USAGE ON SCHEMA {schema} TO {role}").format(**names))
        admin.execute(psql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA {schema} TO {role}").format(**names))
        sql.execute("INSERT INTO workflow_tenant_roles VALUES (%s, 'acme')", (schema,))
        yield start_worker({"DATABASE_URL": make_conninfo(database_url, user=schema, password="role of a test")})
    finally:
        admin.execute(psql.SQL("DROP OWNED BY {role} CASCADE").format(**names))
        admin.execute(psql.SQL("DROP ROLE {role}").format(**names))


def test_a_bound_role_has_its_tenants_approvals_alone(everybody: Worker, bound: Worker) -> None:
    """Others' are not shown, not found, not decided, and their keys are taken; its own go their way."""
    others = ask(everybody, "theirs")
    assert data_of(bound.request({"action": "pending"}))["pending"] == []
    for action in ("approve", "reject"):
        assert bound.request(decide(action, "theirs", others["approval_token"]))["code"] == "APPROVAL_NOT_FOUND"
    assert bound.request(request("new"))["code"] == "TENANT_DENIED"
    assert bound.request(request("theirs", tenant_id="acme"))["code"] == "TENANT_CONFLICT"
    own = ask(bound, "own", tenant_id="acme")
    assert [item["step_id"] for item in data_of(bound.request({"action": "pending"}))["pending"]] == ["own"]
    assert data_of(bound.request(decide("approve", "own", own["approval_token"])))["status"] == "completed"
    assert ask(everybody, "theirs")["status"] == "awaiting-approval"
