-- The record of the migrations, by name; {schema} is the quoted schema.

-- name: search_nowhere
-- For the rest of the transaction no name is looked up in any schema but pg_catalog.
SET LOCAL search_path TO pg_catalog;

-- name: lock
-- Holds every other process that migrates this schema until the transaction ends.
SELECT pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(%(name)s, 0));

-- name: schema_exists
-- Whether the schema is there, asked of the tables of the catalog: its cache may be older than the lock.
SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = %(schema)s);

-- name: table_exists
-- Whether a table is there, asked in the same way.
SELECT EXISTS (SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
               WHERE n.nspname = %(schema)s AND c.relname = %(table)s);

-- name: make_schema
-- Makes the schema.
CREATE SCHEMA {schema};

-- name: make_record
-- Makes the record, empty.
CREATE TABLE {schema}.workflow_checkpoint_migrations (
    version    integer PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- name: applied
-- The migrations that were applied.
SELECT version FROM {schema}.workflow_checkpoint_migrations;

-- name: record
-- Writes one down, in the transaction that applies it.
INSERT INTO {schema}.workflow_checkpoint_migrations (version) VALUES (%(version)s);
