-- Every statement on the cache file, by name.

-- name: find
-- The entry of a key, and the store that the source asked about led to last.
SELECT tenant_id, state_data, id, revision, created_at, updated_at, cached_at, source, store_id, checksum,
       (SELECT store_id FROM cache_store WHERE source = ?3), (SELECT writes FROM cache_history)
FROM checkpoint_cache WHERE workflow_id = ?1 AND step_id = ?2;

-- name: find_together
-- The same of several keys at once, each with the place it has among {keys}; of a large state only its size. In front of
-- them a row without a place: the store, and the count of writes.
WITH k (place, workflow_id, step_id) AS (VALUES {keys})
SELECT NULL AS place, (SELECT store_id FROM cache_store WHERE source = ?), (SELECT writes FROM cache_history),
       NULL AS id, NULL AS revision, NULL AS created_at, NULL AS updated_at, NULL AS cached_at, NULL AS source,
       NULL AS store_id, NULL AS checksum
UNION ALL
SELECT k.place, c.tenant_id, CASE WHEN length(c.state_data) <= 65536 THEN c.state_data ELSE length(c.state_data) END,
       c.id, c.revision, c.created_at, c.updated_at, c.cached_at, c.source, c.store_id, c.checksum
FROM k CROSS JOIN checkpoint_cache AS c ON c.workflow_id = k.workflow_id AND c.step_id = k.step_id;

-- name: put
-- Writes an entry that PostgreSQL confirmed, unless a newer one stands there: (id, revision) never goes back. Where it
-- does although the row was saved later, the numbers began again, as after a restore.
INSERT INTO checkpoint_cache (workflow_id, step_id, tenant_id, state_data, id, revision, created_at, updated_at,
                              cached_at, source, store_id, epoch, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT epoch FROM cache_history), ?)
ON CONFLICT (workflow_id, step_id) DO UPDATE
SET tenant_id = excluded.tenant_id, state_data = excluded.state_data, id = excluded.id, revision = excluded.revision,
    created_at = excluded.created_at, updated_at = excluded.updated_at, cached_at = excluded.cached_at,
    source = excluded.source, store_id = excluded.store_id, epoch = excluded.epoch, checksum = excluded.checksum
WHERE checkpoint_cache.id IS NULL
   OR checkpoint_cache.source <> excluded.source
   OR checkpoint_cache.store_id IS NOT excluded.store_id
   OR (excluded.id, excluded.revision) >= (checkpoint_cache.id, checkpoint_cache.revision)
   OR excluded.updated_at > checkpoint_cache.updated_at;

-- name: put_lossy
-- Writes an entry that PostgreSQL does not know, unless another tenant's entry of the same store stands there.
INSERT INTO checkpoint_cache (workflow_id, step_id, tenant_id, state_data, id, revision, created_at, updated_at,
                              cached_at, source, store_id, epoch, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT epoch FROM cache_history), ?)
ON CONFLICT (workflow_id, step_id) DO UPDATE
SET tenant_id = excluded.tenant_id, state_data = excluded.state_data, id = excluded.id, revision = excluded.revision,
    created_at = excluded.created_at, updated_at = excluded.updated_at, cached_at = excluded.cached_at,
    source = excluded.source, store_id = excluded.store_id, epoch = excluded.epoch, checksum = excluded.checksum
WHERE checkpoint_cache.tenant_id = excluded.tenant_id
   OR checkpoint_cache.state_data IS NULL
   OR '' NOT IN (checkpoint_cache.source, excluded.source)
      AND (checkpoint_cache.source <> excluded.source OR checkpoint_cache.store_id <> excluded.store_id);

-- name: count_write
-- Counts a write that is about to come, or that has just been made. (RETURNING would take SQLite longer than all the rest.)
UPDATE cache_history SET writes = writes + 1;

-- name: writes
-- The count of writes so far.
SELECT writes FROM cache_history;

-- name: drop_seen
-- Removes the very entry that was seen, not one written since.
DELETE FROM checkpoint_cache
WHERE workflow_id = ? AND step_id = ? AND checksum = ? AND cached_at = ?;

-- name: drop_scope
-- Removes the entries of one tenant, or of all, in one workflow, or in all, of one step, or of all.
DELETE FROM checkpoint_cache
WHERE (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:workflow_id IS NULL OR workflow_id = :workflow_id)
  AND (:step_id IS NULL OR step_id = :step_id);

-- name: begin_epoch
-- Marks the beginning of a rebuild: what is written from now on carries the new number.
UPDATE cache_history SET epoch = epoch + 1 RETURNING epoch;

-- name: count_before
-- How many entries of a rebuild's scope stood before it began.
SELECT count(*) FROM checkpoint_cache
WHERE tenant_id = :tenant_id AND (:workflow_id IS NULL OR workflow_id = :workflow_id)
  AND epoch < :epoch AND state_data IS NOT NULL;

-- name: drop_before
-- Removes what of a rebuild's scope stood before it began.
DELETE FROM checkpoint_cache
WHERE tenant_id = :tenant_id AND (:workflow_id IS NULL OR workflow_id = :workflow_id) AND epoch < :epoch;

-- name: page
-- One page of a scope in key order.
SELECT workflow_id, step_id, tenant_id, state_data, id, revision, created_at, updated_at, cached_at, source, store_id,
       checksum
FROM checkpoint_cache
WHERE (workflow_id, step_id) > (:after_workflow, :after_step)
  AND workflow_id <= :last_workflow
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND state_data IS NOT NULL
ORDER BY workflow_id, step_id
LIMIT :limit;

-- name: one
-- The same of one key.
SELECT workflow_id, step_id, tenant_id, state_data, id, revision, created_at, updated_at, cached_at, source, store_id,
       checksum
FROM checkpoint_cache
WHERE workflow_id = :workflow_id AND step_id = :step_id AND state_data IS NOT NULL;

-- name: know_store
-- Remembers which store a source leads to.
INSERT INTO cache_store (source, store_id) VALUES (?, ?)
ON CONFLICT (source) DO UPDATE SET store_id = excluded.store_id WHERE store_id <> excluded.store_id;

-- name: count
-- How many entries there are, of one tenant or of all.
SELECT count(*) FROM checkpoint_cache
WHERE state_data IS NOT NULL AND (:tenant_id IS NULL OR tenant_id = :tenant_id);

-- name: oldest
-- The entries in the order in which they go when room is needed.
SELECT rowid, length(state_data), epoch FROM checkpoint_cache ORDER BY cached_at, rowid;

-- name: evict
-- Removes one entry.
DELETE FROM checkpoint_cache WHERE rowid = ?;

-- name: forget_ended
-- Removes the marks of lives that ended long ago.
DELETE FROM checkpoint_cache WHERE state_data IS NULL AND cached_at < ?;
