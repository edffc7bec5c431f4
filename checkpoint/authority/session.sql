-- What is asked about the connection, the server and the role, by name; {schema} and {table} as in statements.sql.

-- name: greet
-- Tells in one round trip what the connection leads to, and sets the session up where it is really ours (no pooler).
SELECT pg_catalog.pg_backend_pid() AS backend_pid,
       {table}::regclass::oid AS table_oid,
       (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint AS clock_us,
       pg_catalog.current_setting('server_version') AS server_version,
       '{"a":1.0, "a":1e1}'::json::text = '{"a":1.0, "a":1e1}' AS verbatim,
       (SELECT pg_catalog.max(version) FROM {schema}.workflow_checkpoint_migrations) AS schema_version,
       (SELECT store_id::text FROM {schema}.workflow_checkpoint_store) AS store_id,
       (SELECT backend_start::text FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())) AS backend_start,
       CASE WHEN pg_catalog.pg_backend_pid() = %(pid)s THEN
           pg_catalog.concat(pg_catalog.set_config('statement_timeout', %(statement_timeout)s, false),
                  pg_catalog.set_config('default_transaction_isolation', 'read committed', false),
                  pg_catalog.set_config('idle_in_transaction_session_timeout', %(statement_timeout)s, false),
                  pg_catalog.set_config('client_min_messages', 'warning', false),
                  pg_catalog.set_config('search_path', 'pg_catalog', false))
       END AS session;

-- name: notice_lost_client
-- A backend that waits notices within the interval that its client is gone; refused where the system cannot tell.
SELECT pg_catalog.set_config('client_connection_check_interval', '1000', false);

-- name: health
-- Whether the table can be read, the server takes writes and keeps them through a crash, and policies bind this role.
SELECT NOT pg_catalog.pg_is_in_recovery() AND pg_catalog.current_setting('transaction_read_only') = 'off' AS writable,
       pg_catalog.current_setting('fsync') = 'on' AND pg_catalog.current_setting('synchronous_commit') <> 'off' AS durable,
       pg_catalog.row_security_active({table}::regclass)
           AND EXISTS (SELECT FROM {schema}.workflow_tenant_roles WHERE role_name = current_user) AS row_security
FROM (SELECT count(*) FROM (SELECT workflow_id, step_id, tenant_id, state_data, revision, updated_at
                            FROM {schema}.workflow_checkpoints LIMIT 1) AS row) AS readable;

-- name: binding
-- Whether policies bind this role, whether they let it have the tenant, and whether it has the rights to save at all.
SELECT pg_catalog.row_security_active({table}::regclass)
           AND EXISTS (SELECT FROM {schema}.workflow_tenant_roles WHERE role_name = current_user),
       EXISTS (SELECT FROM {schema}.workflow_tenant_roles
               WHERE role_name = current_user AND tenant_id = %(tenant_id)s),
       pg_catalog.has_table_privilege({table}, 'SELECT') AND pg_catalog.has_table_privilege({table}, 'INSERT')
           AND pg_catalog.has_table_privilege({table}, 'UPDATE');

-- name: await_standby
-- Returns when the synchronous standby, if there is one, has everything that was committed so far.
SELECT CASE WHEN pg_catalog.current_setting('synchronous_standby_names') <> ''
            THEN pg_catalog.pg_logical_emit_message(true, 'checkpoint-manager', '') END;

-- name: end_backend
-- Ends the backend of a connection that was given up, so that it cannot act any more; true when none is left.
SELECT coalesce(pg_catalog.bool_and(pg_catalog.pg_terminate_backend(pid, %(wait_ms)s)), true)
FROM pg_catalog.pg_stat_activity
WHERE pid = %(pid)s AND backend_start = %(backend_start)s::timestamptz;
