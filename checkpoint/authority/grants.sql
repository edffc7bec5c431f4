-- What the role of DATABASE_URL may do, by name; asked only after a refusal.

-- name: role
-- The role and the database as they are written in a GRANT, the schema's oid if it is there, and whether the role may
-- make it.
SELECT pg_catalog.quote_ident(current_user), pg_catalog.quote_ident(pg_catalog.current_database()),
       pg_catalog.to_regnamespace(%(schema)s)::oid,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE');

-- name: tables
-- Which of the tables are there, and their oids.
SELECT relname, oid FROM pg_catalog.pg_class WHERE relnamespace = %(namespace)s AND relname = ANY (%(names)s);

-- name: schema_right
-- Whether the role has a right on the schema.
SELECT pg_catalog.has_schema_privilege(%(oid)s::oid, %(right)s);

-- name: table_right
-- Whether the role has a right on a table.
SELECT pg_catalog.has_table_privilege(%(oid)s::oid, %(right)s);
