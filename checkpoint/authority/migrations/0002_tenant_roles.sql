-- Roles that are bound to tenants. The second wall: it holds whatever statement such a role sends.

-- A role named here sees and changes the rows of its tenants only; a role that is not named is not bound.
-- The owner of the tables and superusers are never bound.
CREATE TABLE {schema}.workflow_tenant_roles (
    role_name text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    PRIMARY KEY (role_name, tenant_id)
);
COMMENT ON TABLE {schema}.workflow_tenant_roles IS
    'Which tenants a PostgreSQL role is bound to; by role and not by a session setting, which any role may set.';

-- The policies read the table with the rights of the role that is held to them; each role sees its own rows of it.
GRANT SELECT ON {schema}.workflow_tenant_roles TO PUBLIC;
ALTER TABLE {schema}.workflow_tenant_roles ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_binding ON {schema}.workflow_tenant_roles FOR SELECT USING (role_name = current_user);

ALTER TABLE {schema}.workflow_checkpoints ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant_of_role ON {schema}.workflow_checkpoints
    USING (NOT EXISTS (SELECT FROM {schema}.workflow_tenant_roles AS r WHERE r.role_name = current_user)
           OR tenant_id IN (SELECT r.tenant_id FROM {schema}.workflow_tenant_roles AS r
                            WHERE r.role_name = current_user));
