-- The statements of approvals, by name; {schema} is the quoted schema, {table} the
-- table as a literal. Times leave as microseconds since the epoch.

-- name: find
-- The clock, and the row of one key as it is committed now; one row always, all null behind the clock where none stands.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint,
       c.id, c.tenant_id, c.kind, c.state_data, c.revision, c.write_id::text,
       (extract(epoch FROM c.created_at) * 1000000)::bigint, (extract(epoch FROM c.updated_at) * 1000000)::bigint,
       (extract(epoch FROM c.awaiting_since) * 1000000)::bigint, c.content_sha256, c.published_on
FROM (VALUES (1)) AS clock
LEFT JOIN {schema}.workflow_checkpoints AS c
       ON c.workflow_id = %(workflow_id)s AND c.step_id = %(step_id)s;

-- name: lock
-- The row of one key, held until the transaction ends; the clock is read after the wait for it.
SELECT (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint, c.*
FROM (SELECT id, tenant_id, kind, state_data, revision, write_id::text,
             (extract(epoch FROM created_at) * 1000000)::bigint AS created_us,
             (extract(epoch FROM updated_at) * 1000000)::bigint AS updated_us,
             (extract(epoch FROM awaiting_since) * 1000000)::bigint AS awaiting_us, content_sha256, published_on
      FROM {schema}.workflow_checkpoints
      WHERE workflow_id = %(workflow_id)s AND step_id = %(step_id)s
      FOR UPDATE) AS c;

-- name: request
-- Writes a new approval only where no row of that key stands; like a save it refuses to act where it is too old.
INSERT INTO {schema}.workflow_checkpoints
       (workflow_id, step_id, tenant_id, kind, state_data, write_id, created_at, updated_at, awaiting_since,
        content_sha256)
SELECT %(workflow_id)s, %(step_id)s, %(tenant_id)s, 'approval', %(state_data)s, %(write_id)s::uuid, now.at, now.at,
       'epoch'::timestamptz + %(awaiting_us)s::bigint * interval '1 microsecond', %(content_sha256)s
FROM (SELECT pg_catalog.clock_timestamp() AS at) AS now
WHERE pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
ON CONFLICT (workflow_id, step_id) DO NOTHING
RETURNING id, revision, (extract(epoch FROM created_at) * 1000000)::bigint,
          (extract(epoch FROM updated_at) * 1000000)::bigint, {table}::regclass::oid;

-- name: change
-- Writes the locked approval anew; whoever reads it next finds a later time and a higher revision. Refuses to act where it
-- is too old.
UPDATE {schema}.workflow_checkpoints
SET state_data     = %(state_data)s,
    awaiting_since = 'epoch'::timestamptz + %(awaiting_us)s::bigint * interval '1 microsecond',
    content_sha256 = %(content_sha256)s,
    published_on   = %(published_on)s,
    revision       = revision + 1,
    write_id       = %(write_id)s::uuid,
    updated_at     = greatest(pg_catalog.clock_timestamp(), updated_at + interval '1 microsecond')
WHERE workflow_id = %(workflow_id)s AND step_id = %(step_id)s AND id = %(id)s AND revision = %(revision)s
  AND pg_catalog.clock_timestamp() < 'epoch'::timestamptz + %(sent_us)s::bigint * interval '1 microsecond' + {age_limit}
RETURNING id, revision, (extract(epoch FROM created_at) * 1000000)::bigint,
          (extract(epoch FROM updated_at) * 1000000)::bigint, {table}::regclass::oid;

-- name: waiting
-- One page of approvals that wait, the one asked for first in front.
SELECT workflow_id, step_id, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::bigint,
       id, tenant_id, kind, state_data, revision, write_id::text,
       (extract(epoch FROM created_at) * 1000000)::bigint, (extract(epoch FROM updated_at) * 1000000)::bigint,
       (extract(epoch FROM awaiting_since) * 1000000)::bigint, content_sha256, published_on
FROM {schema}.workflow_checkpoints
WHERE awaiting_since IS NOT NULL AND kind = 'approval'
  AND (awaiting_since, id) > ('epoch'::timestamptz + %(after_us)s::bigint / 1000000 * interval '1 second'
                           + pg_catalog.mod(%(after_us)s::bigint, 1000000) * interval '1 microsecond', %(after_id)s::bigint)
  AND (%(tenant_id)s::text IS NULL OR tenant_id = %(tenant_id)s)
ORDER BY awaiting_since, id
LIMIT %(limit)s;
