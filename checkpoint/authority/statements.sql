-- Every statement of the worker about rows, by name. None depends on search_path: {schema} is the quoted schema, functions
-- are those of pg_catalog, also behind a pooler, where the path cannot be set. {table} is the table of checkpoints as a
-- literal: its oid tells whether the table is still the one that the greeting told of.
-- Times leave as microseconds since the epoch, but for save, save_new, save_over and get, whose times are loaded as such.
-- Ids compare under collation "C" (the columns declare it). Intervals are multiplied in floating point, which loses
-- microseconds after the year 2255: the place where a page ends is put together of seconds and microseconds.

-- name: save
-- Writes the state whatever stood there, unless the row is another tenant's or of another kind. Refuses to act where it
-- is too old, or where the row was saved after the statement was sent: a connection that was given up must not
-- overwrite what was acknowledged since. The caller, if there still is one, sends it again.
INSERT INTO {schema}.workflow_checkpoints AS c
       (workflow_id, step_id, tenant_id, state_data, write_id, created_at, updated_at)
SELECT %(workflow_id)s, %(step_id)s, %(tenant_id)s, %(state_data)s, %(write_id)s::uuid, now.at, now.at
FROM (SELECT pg_catalog.clock_timestamp() AS at) AS now
WHERE pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
ON CONFLICT (workflow_id, step_id) DO UPDATE
SET state_data = EXCLUDED.state_data,
    revision   = c.revision + 1,
    write_id   = EXCLUDED.write_id,
    updated_at = greatest(pg_catalog.clock_timestamp(), c.updated_at + interval '1 microsecond')
WHERE c.tenant_id = EXCLUDED.tenant_id
  AND c.kind = 'checkpoint'
  AND c.updated_at <= 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond'
  AND pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
RETURNING id, created_at, updated_at, revision, {table}::regclass::oid, pg_catalog.clock_timestamp();

-- name: save_together
-- The same for several keys at once, locked in key order so that two such statements never wait for each other; times
-- follow the order given. A key that it refuses does not come back.
WITH given AS (
    SELECT * FROM unnest(%(workflow_ids)s::text[], %(step_ids)s::text[], %(tenant_ids)s::text[], %(states)s::json[])
        WITH ORDINALITY AS g (workflow_id, step_id, tenant_id, state_data, place)
), now AS (
    SELECT pg_catalog.clock_timestamp() AS at
), written AS (
    INSERT INTO {schema}.workflow_checkpoints AS c
           (workflow_id, step_id, tenant_id, state_data, write_id, created_at, updated_at)
    SELECT workflow_id, step_id, tenant_id, state_data, %(write_id)s::uuid,
           at + place * interval '1 microsecond', at + place * interval '1 microsecond'
    FROM given, now
    WHERE at < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
    ORDER BY workflow_id COLLATE "C", step_id COLLATE "C"
    ON CONFLICT (workflow_id, step_id) DO UPDATE
    SET state_data = EXCLUDED.state_data,
        revision   = c.revision + 1,
        write_id   = EXCLUDED.write_id,
        updated_at = greatest(EXCLUDED.updated_at, c.updated_at + interval '1 microsecond')
    WHERE c.tenant_id = EXCLUDED.tenant_id
      AND c.kind = 'checkpoint'
      AND c.updated_at <= 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond'
      AND pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
    RETURNING workflow_id, step_id, id, created_at, updated_at, revision
)
SELECT place, id, (extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint,
       revision, {table}::regclass::oid, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint
FROM written JOIN given USING (workflow_id, step_id);

-- name: saved_together
-- Of several keys, which hold what the statement with this write_id wrote, which it must have refused, and which were
-- saved by others since it was sent: those it may have written before.
SELECT k.place, c.write_id = %(write_id)s::uuid, c.tenant_id <> k.tenant_id COLLATE "C" OR c.kind <> 'checkpoint',
       c.id, (extract(epoch FROM c.created_at) * 1000000)::bigint, (extract(epoch FROM c.updated_at) * 1000000)::bigint,
       c.revision, {table}::regclass::oid, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint
FROM unnest(%(workflow_ids)s::text[], %(step_ids)s::text[], %(tenant_ids)s::text[])
         WITH ORDINALITY AS k (workflow_id, step_id, tenant_id, place)
JOIN {schema}.workflow_checkpoints AS c
  ON c.workflow_id = k.workflow_id COLLATE "C" AND c.step_id = k.step_id COLLATE "C"
WHERE c.write_id = %(write_id)s::uuid OR c.tenant_id <> k.tenant_id COLLATE "C" OR c.kind <> 'checkpoint'
   OR c.updated_at > 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond';

-- name: save_new
-- Writes the state only where no row of that key stands. Refuses to act where it is too old.
INSERT INTO {schema}.workflow_checkpoints
       (workflow_id, step_id, tenant_id, state_data, write_id, created_at, updated_at)
SELECT %(workflow_id)s, %(step_id)s, %(tenant_id)s, %(state_data)s, %(write_id)s::uuid, now.at, now.at
FROM (SELECT pg_catalog.clock_timestamp() AS at) AS now
WHERE pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
ON CONFLICT (workflow_id, step_id) DO NOTHING
RETURNING id, created_at, updated_at, revision, {table}::regclass::oid, pg_catalog.clock_timestamp();

-- name: save_over
-- Writes the state only over the expected revision of the tenant's own row; never inserts. Refuses to act where it is too old.
UPDATE {schema}.workflow_checkpoints
SET state_data = %(state_data)s,
    revision   = revision + 1,
    write_id   = %(write_id)s::uuid,
    updated_at = greatest(pg_catalog.clock_timestamp(), updated_at + interval '1 microsecond')
WHERE workflow_id = %(workflow_id)s AND step_id = %(step_id)s
  AND tenant_id = %(tenant_id)s AND kind = 'checkpoint' AND revision = %(expected_revision)s
  AND pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
RETURNING id, created_at, updated_at, revision, {table}::regclass::oid, pg_catalog.clock_timestamp();

-- name: standing
-- The clock, and what stands under a key, without its state: why a write was refused, or whether it is the one there.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint,
       c.tenant_id, c.kind, c.revision, c.write_id::text, c.id,
       (extract(epoch FROM c.created_at) * 1000000)::bigint, (extract(epoch FROM c.updated_at) * 1000000)::bigint,
       c.updated_at > pg_catalog.clock_timestamp()
FROM (VALUES (1)) AS always
LEFT JOIN {schema}.workflow_checkpoints AS c ON c.workflow_id = %(workflow_id)s AND c.step_id = %(step_id)s;

-- name: lock_key
-- Holds the row of a key until the transaction ends; nobody saves it meanwhile. Tells when it was saved last.
SELECT (extract(epoch FROM updated_at) * 1000000)::bigint FROM {schema}.workflow_checkpoints
WHERE workflow_id = %(workflow_id)s AND step_id = %(step_id)s
FOR UPDATE;

-- name: get
-- The row of one key, as it is committed now; where there is none, the table's oid still comes.
SELECT {table}::regclass::oid, c.tenant_id, c.state_data, c.id, c.revision, c.created_at, c.updated_at
FROM (VALUES (1)) AS always
LEFT JOIN {schema}.workflow_checkpoints AS c
       ON c.workflow_id = %(workflow_id)s AND c.step_id = %(step_id)s
      AND (%(tenant_id)s::text IS NULL OR c.tenant_id = %(tenant_id)s);

-- name: get_together
-- The rows of several keys at once, each looked up by itself. A state that is large comes back as NULL: asked for alone,
-- it does not have to wait in memory for the others. As stored it may be smaller; one that shrank much is not looked into.
SELECT k.place, {table}::regclass::oid, c.tenant_id,
       CASE WHEN pg_catalog.pg_column_size(c.state_data) <= 8192
             AND pg_catalog.octet_length(c.state_data::text) <= 65536 THEN c.state_data END,
       c.id, c.revision, (extract(epoch FROM c.created_at) * 1000000)::bigint,
       (extract(epoch FROM c.updated_at) * 1000000)::bigint
FROM unnest(%(workflow_ids)s::text[], %(step_ids)s::text[], %(tenant_ids)s::text[])
         WITH ORDINALITY AS k (workflow_id, step_id, tenant_id, place)
LEFT JOIN LATERAL (
    SELECT * FROM {schema}.workflow_checkpoints AS t
    WHERE t.workflow_id = k.workflow_id COLLATE "C" AND t.step_id = k.step_id COLLATE "C"
      AND (k.tenant_id IS NULL OR t.tenant_id = k.tenant_id COLLATE "C")
    OFFSET 0) AS c ON true;

-- name: list
-- One page of a workflow, newest first; a row that is not saved meanwhile stands in exactly one page.
SELECT step_id, tenant_id, state_data, id, revision,
       (extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint
FROM {schema}.workflow_checkpoints
WHERE workflow_id = %(workflow_id)s
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
  AND (updated_at, id) < ('epoch'::timestamptz + %(before_us)s::bigint / 1000000 * interval '1 second'
                           + pg_catalog.mod(%(before_us)s::bigint, 1000000) * interval '1 microsecond', %(before_id)s::bigint)
ORDER BY updated_at DESC, id DESC
LIMIT %(limit)s;

-- name: list_without_state
-- The same page without the states, which are then not even read.
SELECT step_id, tenant_id, NULL::json, id, revision,
       (extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint
FROM {schema}.workflow_checkpoints
WHERE workflow_id = %(workflow_id)s
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
  AND (updated_at, id) < ('epoch'::timestamptz + %(before_us)s::bigint / 1000000 * interval '1 second'
                           + pg_catalog.mod(%(before_us)s::bigint, 1000000) * interval '1 microsecond', %(before_id)s::bigint)
ORDER BY updated_at DESC, id DESC
LIMIT %(limit)s;

-- name: workflows
-- One page of workflows with their number of checkpoints, the one saved last first.
SELECT workflow_id, tenant_id, checkpoint_count, last_us
FROM (SELECT workflow_id, tenant_id, pg_catalog.count(*) AS checkpoint_count,
             (extract(epoch FROM pg_catalog.max(updated_at)) * 1000000)::bigint AS last_us
      FROM {schema}.workflow_checkpoints
      WHERE %(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s
      GROUP BY workflow_id, tenant_id) AS w
WHERE (-last_us, workflow_id, tenant_id)
    > (-%(before_us)s::bigint, %(after_workflow)s::text COLLATE "C", %(after_tenant)s::text COLLATE "C")
ORDER BY -last_us, workflow_id, tenant_id
LIMIT %(limit)s;

-- name: newest_of_tenant
-- A tenant's rows, newest first, as one snapshot.
SELECT workflow_id, step_id, tenant_id, state_data, id, revision,
       (extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint
FROM {schema}.workflow_checkpoints
WHERE tenant_id = %(tenant_id)s
ORDER BY updated_at DESC, id DESC
LIMIT %(limit)s;

-- name: newest_of_workflow
-- A tenant's rows of one workflow, newest first, as one snapshot.
SELECT workflow_id, step_id, tenant_id, state_data, id, revision,
       (extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint
FROM {schema}.workflow_checkpoints
WHERE workflow_id = %(workflow_id)s AND tenant_id = %(tenant_id)s
ORDER BY updated_at DESC, id DESC
LIMIT %(limit)s;

-- name: digests
-- One page, in key order, of what identifies each row and of the SHA-256 of its stored text; the text stays here.
SELECT workflow_id, step_id, tenant_id, id, revision, pg_catalog.sha256(pg_catalog.convert_to(state_data::text, 'UTF8'))
FROM {schema}.workflow_checkpoints
WHERE (workflow_id, step_id) > (%(after_workflow)s::text, %(after_step)s::text)
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
ORDER BY workflow_id, step_id
LIMIT %(limit)s;

-- name: digests_of_workflow
-- The same page within one workflow.
SELECT workflow_id, step_id, tenant_id, id, revision, pg_catalog.sha256(pg_catalog.convert_to(state_data::text, 'UTF8'))
FROM {schema}.workflow_checkpoints
WHERE workflow_id = %(workflow_id)s AND step_id > %(after_step)s::text
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
ORDER BY workflow_id, step_id
LIMIT %(limit)s;

-- name: digests_of_keys
-- The same of the keys given, for a second look.
SELECT c.workflow_id, c.step_id, c.tenant_id, c.id, c.revision,
       pg_catalog.sha256(pg_catalog.convert_to(c.state_data::text, 'UTF8'))
FROM unnest(%(workflow_ids)s::text[], %(step_ids)s::text[]) AS k (workflow_id, step_id)
JOIN {schema}.workflow_checkpoints AS c
  ON c.workflow_id = k.workflow_id COLLATE "C" AND c.step_id = k.step_id COLLATE "C"
WHERE %(tenant_id)s::text IS NULL OR c.tenant_id = %(tenant_id)s;

-- name: delete_step
-- Removes one row of the tenant, fenced like a save; tells which life of the key ended.
DELETE FROM {schema}.workflow_checkpoints
WHERE workflow_id = %(workflow_id)s AND step_id = %(step_id)s AND tenant_id = %(tenant_id)s
  AND updated_at <= 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond'
  AND pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
RETURNING workflow_id, step_id, tenant_id, id, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint;

-- name: delete_workflow
-- Removes the tenant's rows of one workflow, fenced like a save; tells which lives ended.
DELETE FROM {schema}.workflow_checkpoints
WHERE workflow_id = %(workflow_id)s AND tenant_id = %(tenant_id)s
  AND updated_at <= 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond'
  AND pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
RETURNING workflow_id, step_id, tenant_id, id, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint;

-- name: prune
-- Removes one chunk of rows not saved since the moment given, in its own transaction; open approvals stay.
DELETE FROM {schema}.workflow_checkpoints
WHERE (workflow_id, step_id) IN (
    SELECT workflow_id, step_id FROM {schema}.workflow_checkpoints
    WHERE updated_at < 'epoch'::timestamptz + %(before_us)s::bigint * interval '1 microsecond'
      AND awaiting_since IS NULL
      AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
      AND (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s)
    ORDER BY workflow_id, step_id
    LIMIT %(limit)s
    FOR UPDATE)
  AND updated_at < 'epoch'::timestamptz + %(before_us)s::bigint * interval '1 microsecond'
RETURNING workflow_id, step_id, tenant_id, id, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint;

-- name: prunable
-- How many rows a prune up to the moment given would remove.
SELECT pg_catalog.count(*)
FROM {schema}.workflow_checkpoints
WHERE updated_at < 'epoch'::timestamptz + %(before_us)s::bigint * interval '1 microsecond'
  AND awaiting_since IS NULL
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
  AND (%(workflow_id)s::text IS NULL OR workflow_id = %(workflow_id)s);

-- name: server_time
-- PostgreSQL's clock, less the seconds given.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp() - %(ago_sec)s::bigint * interval '1 second') * 1000000)::bigint;

-- name: rows_ahead
-- Whether the tenant has rows of that key or workflow that were saved later than the clock tells now.
SELECT EXISTS (SELECT FROM {schema}.workflow_checkpoints
               WHERE workflow_id = %(workflow_id)s AND tenant_id = %(tenant_id)s
                 AND (%(step_id)s::text IS NULL OR step_id = %(step_id)s)
                 AND updated_at > pg_catalog.clock_timestamp());
