-- The store: its identity, and one row a step.

CREATE TABLE {schema}.workflow_checkpoint_store (
    store_id   uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE {schema}.workflow_checkpoint_store IS
    'One row: the random identity of this store, by which a cache knows whether it was filled from it.';
INSERT INTO {schema}.workflow_checkpoint_store DEFAULT VALUES;

-- What holds for a row, whoever writes it. Domains, and not checks of the table, which PostgreSQL reads anew for every
-- statement: that is a twentieth of a save.
DROP DOMAIN IF EXISTS {schema}.workflow_checkpoint_kind, {schema}.workflow_checkpoint_state,
    {schema}.workflow_checkpoint_revision, {schema}.workflow_checkpoint_moment;  -- left over where the tables were dropped
CREATE DOMAIN {schema}.workflow_checkpoint_kind AS text COLLATE "C" CHECK (VALUE IN ('checkpoint', 'approval'));
CREATE DOMAIN {schema}.workflow_checkpoint_state AS json CHECK (json_typeof(VALUE) = 'object');
CREATE DOMAIN {schema}.workflow_checkpoint_revision AS bigint CHECK (VALUE >= 1);
CREATE DOMAIN {schema}.workflow_checkpoint_moment AS timestamptz
    CHECK (VALUE BETWEEN '1000-01-01 00:00+00' AND '9999-01-01 00:00+00');

-- The natural key is the primary key, so that the table can be partitioned or distributed by workflow_id.
-- Every column but the key and the state has a default, so that other programs can insert.
CREATE TABLE {schema}.workflow_checkpoints (
    workflow_id    text COLLATE "C" NOT NULL,
    step_id        text COLLATE "C" NOT NULL,
    id             bigint GENERATED ALWAYS AS IDENTITY,
    tenant_id      text COLLATE "C" NOT NULL DEFAULT 'default',
    kind           {schema}.workflow_checkpoint_kind NOT NULL DEFAULT 'checkpoint',
    state_data     {schema}.workflow_checkpoint_state NOT NULL,
    revision       {schema}.workflow_checkpoint_revision NOT NULL DEFAULT 1,
    write_id       uuid NOT NULL DEFAULT gen_random_uuid(),
    created_at     {schema}.workflow_checkpoint_moment NOT NULL DEFAULT clock_timestamp(),
    updated_at     {schema}.workflow_checkpoint_moment NOT NULL DEFAULT clock_timestamp(),
    awaiting_since {schema}.workflow_checkpoint_moment,
    PRIMARY KEY (workflow_id, step_id)
);
COMMENT ON COLUMN {schema}.workflow_checkpoints.state_data IS
    'JSON text, kept exactly as it was sent; cast to jsonb to query it.';
COMMENT ON COLUMN {schema}.workflow_checkpoints.awaiting_since IS
    'When a person was asked, while the answer is open. A column, because state_data may hold text no JSON operator takes.';

CREATE INDEX workflow_checkpoints_newest_of_workflow
    ON {schema}.workflow_checkpoints (workflow_id, updated_at DESC, id DESC);
CREATE INDEX workflow_checkpoints_newest_of_tenant
    ON {schema}.workflow_checkpoints (tenant_id, updated_at DESC, id DESC);
CREATE INDEX workflow_checkpoints_awaiting
    ON {schema}.workflow_checkpoints (awaiting_since, id) WHERE awaiting_since IS NOT NULL;

-- lz4 makes large states two to three times as fast to save and to read, where the server was built with it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_catalog.pg_settings
               WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) THEN
        ALTER TABLE {schema}.workflow_checkpoints ALTER COLUMN state_data SET COMPRESSION lz4;
    END IF;
END
$$;
