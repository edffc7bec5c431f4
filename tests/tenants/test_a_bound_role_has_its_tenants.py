"""PostgreSQL itself keeps tenants apart, by the role, whatever statement is sent (contract, section 6)."""

from __future__ import annotations

import json
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.asking import done, refused
from tests.tenants.conftest import (
    AN_HOUR,
    APPROVAL_OF_A,
    ASKED_BY_A,
    KEY_OF_A,
    KEY_OF_B,
    OF_B,
    SHARED,
    tells_nothing_of_a,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import StartWorker
    from tests.support.database import Connection
    from tests.support.worker import Worker
    from tests.tenants.conftest import Tenants

PASSWORD = "of a test"
INSUFFICIENT = "42501"
STATE = {"state_data": {"whose": "b now"}}
# What docs/operations.md gives to a role of a worker.
GRANTS = (
    "USAGE ON SCHEMA {schema}",
    "SELECT, INSERT, UPDATE, DELETE ON {schema}.workflow_checkpoints",
    "SELECT ON {schema}.workflow_checkpoint_store, {schema}.workflow_checkpoint_migrations",
)
A_KEY = "workflow_id = 'shared workflow' AND step_id = 'step-of-a-1'"
INSERT = "INSERT INTO workflow_checkpoints (workflow_id, step_id, tenant_id, state_data) VALUES"
OVER_A = """('shared workflow', 'step-of-a-1', 'b', '{}')
ON CONFLICT (workflow_id, step_id) DO UPDATE SET state_data = EXCLUDED.state_data, tenant_id = 'b'"""
# Statements that a role bound to b is refused.
REFUSED = (
    f"{INSERT} ('new', 's', 'a', '{{}}')",
    f"{INSERT} ('new', 's', DEFAULT, '{{}}')",
    f"{INSERT} {OVER_A}",
    "UPDATE workflow_checkpoints SET tenant_id = 'a'",
    "TRUNCATE workflow_checkpoints",
    "COPY workflow_checkpoints (workflow_id, step_id, tenant_id, state_data) FROM STDIN",
    "ALTER TABLE workflow_checkpoints DISABLE ROW LEVEL SECURITY",
    "DROP POLICY tenant_of_role ON workflow_checkpoints",
    "CREATE POLICY everything ON workflow_checkpoints USING (true)",
    "INSERT INTO workflow_tenant_roles VALUES (current_user, 'a')",
    "UPDATE workflow_tenant_roles SET tenant_id = 'a'",
    "DELETE FROM workflow_tenant_roles",
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


def test_sql_of_a_bound_role_sees_its_tenant_alone(roles: Roles, tenants: Tenants) -> None:
    """Whatever a role bound to b selects, counts, copies or locks holds rows of b only."""
    of_b = sorted(OF_B)
    with roles.connection(roles.new("b")) as sql:
        for clause in ("", " WHERE tenant_id = 'a'", f" WHERE {A_KEY}", " FOR UPDATE", " WHERE tenant_id <> 'b'"):
            rows = sql.execute(f"SELECT workflow_id, step_id, tenant_id FROM workflow_checkpoints{clause}").fetchall()
            assert {tenant for *_, tenant in rows} <= {"b"}, clause
            assert sorted((workflow, step) for workflow, step, _ in rows) == (of_b if "WHERE" not in clause else [])
        assert sql.execute("SELECT count(*) FROM workflow_checkpoints").fetchone() == (len(OF_B),)
        with sql.cursor().copy("COPY workflow_checkpoints TO STDOUT") as copy:
            copied = b"".join(bytes(block) for block in copy)
        assert b"-of-a-" not in copied
        assert copied.count(b"\n") == len(OF_B)
        assert sql.execute("SELECT tenant_id FROM workflow_tenant_roles").fetchall() == [("b",)]


def test_sql_of_a_bound_role_changes_its_tenant_alone(roles: Roles, tenants: Tenants) -> None:
    """Updates, deletes and merges of everything reach rows of b only."""
    with roles.connection(roles.new("b")) as sql:
        for change in ("UPDATE workflow_checkpoints SET revision = revision + 1", "DELETE FROM workflow_checkpoints"):
            assert sql.execute(f"{change} WHERE tenant_id = 'a'").rowcount == 0
            assert sql.execute(f"{change} WHERE {A_KEY}").rowcount == 0
            assert sql.execute(change).rowcount == len(OF_B)


def test_sql_that_would_reach_another_tenant_is_refused(roles: Roles, tenants: Tenants) -> None:
    """Rows for a, over a's rows, moved to a; the policies, the bindings, other roles: all 42501, nothing changed."""
    role_of_a = roles.new("a")
    with roles.connection(roles.new("b")) as sql:
        for statement in (*REFUSED, f"SET ROLE {role_of_a}", f"SET SESSION AUTHORIZATION {role_of_a}"):
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported)):
                _run(sql, statement)
        sql.execute("SET row_security = off")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql.execute("SELECT FROM workflow_checkpoints")
    with roles.connection(role_of_a) as sql:
        assert sql.execute("SELECT count(*) FROM workflow_checkpoints").fetchone() == (tenants.rows_of_a,)


def test_no_setting_of_a_session_changes_what_a_bound_role_sees(roles: Roles, tenants: Tenants) -> None:
    """A role may set any variable of its session; none of them is what the policies go by."""
    with roles.connection(roles.new("b")) as sql:
        for name in ("checkpoint.tenant", "app.tenant_id", "app.current_tenant", "checkpoint.tenant_id"):
            sql.execute(f"SET {name} = 'a'")
        sql.execute("SET search_path TO pg_temp")
        sql.execute(
            "CREATE TEMP TABLE workflow_tenant_roles AS SELECT current_user::text AS role_name, 'a' AS tenant_id"
        )
        schema = sql.execute(
            "SELECT relnamespace::regnamespace::text FROM pg_class WHERE relname = 'workflow_checkpoints'"
        )
        seen = set()
        for (name,) in schema.fetchall():
            try:
                seen |= set(sql.execute(f"SELECT tenant_id FROM {name}.workflow_checkpoints").fetchall())
            except psycopg.errors.InsufficientPrivilege:
                continue  # the schema of another test
        assert seen == {("b",)}


def test_a_function_of_a_bound_roles_own_is_shown_no_row_of_another(roles: Roles, tenants: Tenants) -> None:
    """A cheap function in the WHERE, which tells what it is given, is given rows of b only."""
    told: list[str] = []
    with roles.connection(roles.new("b")) as sql:
        sql.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        sql.execute(
            "CREATE FUNCTION pg_temp.tell(id text, state text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS "
            "$$ BEGIN RAISE NOTICE 'told % %', id, state; RETURN true; END $$"
        )
        sql.execute("SELECT FROM workflow_checkpoints WHERE pg_temp.tell(step_id, state_data::text)")
    assert len(told) == len(OF_B)
    assert not [line for line in told if "-of-a-" in line or "known-to-a" in line]


def test_a_worker_of_a_bound_role_has_no_part_of_another_tenant(
    as_role: AsRole, roles: Roles, tenants: Tenants
) -> None:
    """Not pinned, but its role is: every action reads, counts, changes and deletes rows of b only."""
    worker = as_role(roles.new("b"))
    for tenant in ({}, {"tenant_id": "a"}):
        for action in ("get", "cached_get"):
            assert not done(worker, action, **KEY_OF_A, **tenant)["found"]
        assert done(worker, "list", workflow_id="workflow-of-a", **tenant)["count"] == 0
        assert done(worker, "delete", **KEY_OF_A, **tenant)["deleted_count"] == 0
        assert done(worker, "delete", workflow_id="workflow-of-a", all_steps=True, **tenant)["deleted_count"] == 0
        assert done(worker, "prune", older_than_sec=AN_HOUR, **tenant)["deleted_count"] == 0
        assert done(worker, "rebuild", **tenant)["pg_read_count"] == 0
        tells_nothing_of_a(worker)
    assert [row["tenant_id"] for row in done(worker, "list", workflow_id=SHARED)["checkpoints"]] == ["b"]
    assert {row["tenant_id"] for row in done(worker, "workflows")["workflows"]} == {"b"}
    assert done(worker, "verify")["pg_count"] == len(OF_B)
    assert done(worker, "pending")["count"] == 0
    assert done(worker, "rebuild", tenant_id="b")["pg_read_count"] == len(OF_B)
    tells_nothing_of_a(worker)
    assert done(worker, "prune", older_than_sec=AN_HOUR, all_tenants=True, dry_run=True)["deleted_count"] == len(OF_B)
    assert done(worker, "prune", older_than_sec=AN_HOUR, all_tenants=True)["deleted_count"] == len(OF_B)


def test_saves_of_a_bound_role_are_denied_or_conflict(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """Another tenant's name is TENANT_DENIED, another tenant's key TENANT_CONFLICT; its own rows are saved as ever."""
    worker = as_role(roles.new("b"))
    for key in (KEY_OF_A, {"workflow_id": "new", "step_id": "s"}):
        for tenant in ({}, {"tenant_id": "a"}):  # without one it is the tenant "default"
            for expected in ({}, {"expected_revision": 0}):
                code, error = refused(worker, "save", **key, **STATE, **tenant, **expected)
                assert code == "TENANT_DENIED", (key, tenant, expected, error)
    for expected in ({}, {"expected_revision": 0}, {"expected_revision": 1}, {"expected_revision": 7}):
        code, error = refused(worker, "save", **KEY_OF_A, **STATE, tenant_id="b", **expected)
        assert code == "TENANT_CONFLICT", (expected, error)
        assert "revision" not in error
    saved = done(worker, "save", **KEY_OF_B, **STATE, tenant_id="b")
    assert saved["revision"] == 2
    assert done(worker, "save", **KEY_OF_B, **STATE, tenant_id="b", expected_revision=2)["revision"] == 3
    assert refused(worker, "save", **KEY_OF_B, **STATE, tenant_id="b", expected_revision=2)[0] == "REVISION_CONFLICT"
    assert done(worker, "save", workflow_id="new", step_id="s", **STATE, tenant_id="b")["revision"] == 1


def test_saves_that_waited_together_are_each_held_to_the_tenant(
    as_role: AsRole, roles: Roles, tenants: Tenants
) -> None:
    """Sent in one write, each gets its own verdict: one for a, one onto a's key and one of its own."""
    bound, pinned = as_role(roles.new("b")), tenants.pinned
    own = {"workflow_id": "together", "tenant_id": "b", **STATE}
    together = (
        {**own, "step_id": "1"},
        {**own, "step_id": "2", "tenant_id": "a"},
        {**own, **KEY_OF_A},
        {**own, "step_id": "3"},
    )
    for worker in (bound, pinned):
        lines = [json.dumps({"action": "save", **fields}) + "\n" for fields in together]
        worker.send_raw("".join(lines).encode())
        answers = worker.read_lines(len(together))
        assert [answer["code"] for answer in answers] == [None, "TENANT_DENIED", "TENANT_CONFLICT", None], answers


def test_approvals_of_a_bound_role_stay_in_its_tenant(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """What waits for a's people is not seen, decided or replaced by b's."""
    worker = as_role(roles.new("b"))
    assert done(worker, "pending")["count"] == 0
    for action in ("approve", "reject"):
        assert refused(worker, action, **APPROVAL_OF_A, token=tenants.token_of_a)[0] == "APPROVAL_NOT_FOUND"
    assert refused(worker, "request_approval", **APPROVAL_OF_A, **ASKED_BY_A, tenant_id="b")[0] == "TENANT_CONFLICT"
    tells_nothing_of_a(worker)
    new = {"workflow_id": "new", "step_id": "approval"}
    assert refused(worker, "request_approval", **new, **ASKED_BY_A, tenant_id="a")[0] == "TENANT_DENIED"
    assert refused(worker, "request_approval", **new, **ASKED_BY_A)[0] == "TENANT_DENIED"
    assert done(worker, "request_approval", **new, **ASKED_BY_A, tenant_id="b")["created"]
    assert [row["tenant_id"] for row in done(worker, "pending")["pending"]] == ["b"]


def test_a_pinned_process_with_a_bound_role_has_both_walls(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """Pinned to b under a role of b all works without naming the tenant; under a role of a nothing of a can be had."""
    both = as_role(roles.new("b"), CHECKPOINT_TENANT="b")
    assert done(both, "save", **KEY_OF_B, **STATE)["tenant_id"] == "b"
    assert done(both, "healthcheck")["pg"]["row_security"] is True
    crossed = as_role(roles.new("a"), CHECKPOINT_TENANT="b")
    assert not done(crossed, "get", **KEY_OF_A)["found"]
    assert done(crossed, "workflows")["count"] == 0
    assert refused(crossed, "save", **KEY_OF_A, **STATE)[0] == "TENANT_DENIED"
    assert refused(crossed, "save", workflow_id="new", step_id="s", **STATE)[0] == "TENANT_DENIED"


def test_a_role_may_be_bound_to_several_tenants(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """It reads and writes each of them, and nobody else's."""
    worker = as_role(roles.new("b", "c"))
    assert done(worker, "save", workflow_id="of c", step_id="s", tenant_id="c", **STATE)["revision"] == 1
    assert {row["tenant_id"] for row in done(worker, "workflows")["workflows"]} == {"b", "c"}
    assert refused(worker, "save", workflow_id="of d", step_id="s", tenant_id="d", **STATE)[0] == "TENANT_DENIED"


def test_a_role_that_is_not_bound_works_as_before(as_role: AsRole, roles: Roles, tenants: Tenants) -> None:
    """Neither the owner nor bound: it sees all tenants' rows and saves for each, and the health says that no policy binds."""
    worker = as_role(roles.new())
    assert {row["tenant_id"] for row in done(worker, "workflows")["workflows"]} == {"a", "b"}
    assert done(worker, "verify")["pg_count"] == tenants.rows_of_a + len(OF_B)
    assert done(worker, "get", **KEY_OF_A)["tenant_id"] == "a"
    for tenant in ("b", "c", "default"):
        new = {"workflow_id": f"of {tenant}", "step_id": "s", "tenant_id": tenant}
        assert done(worker, "save", **new, **STATE)["revision"] == 1
        assert done(worker, "delete", **new)["deleted_count"] == 1
    assert refused(worker, "save", **KEY_OF_A, **STATE, tenant_id="b")[0] == "TENANT_CONFLICT"
    assert done(worker, "healthcheck")["pg"]["row_security"] is False
    assert done(tenants.everybody, "healthcheck")["pg"]["row_security"] is False


def _run(sql: Connection, statement: str) -> None:
    if statement.startswith("COPY"):
        with sql.cursor().copy(statement) as copy:
            copy.write("new\ts\ta\t{}\n")
    else:
        sql.execute(statement)
