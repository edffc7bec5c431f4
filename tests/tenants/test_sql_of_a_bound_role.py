"""PostgreSQL itself keeps tenants apart, by the role, whatever statement is sent (contract, section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.tenants.conftest import OF_B

if TYPE_CHECKING:
    from tests.support.database import Connection
    from tests.tenants.conftest import Tenants
    from tests.tenants.roles import Roles

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


def _run(sql: Connection, statement: str) -> None:
    if statement.startswith("COPY"):
        with sql.cursor().copy(statement) as copy:
            copy.write("new\ts\ta\t{}\n")
    else:
        sql.execute(statement)
