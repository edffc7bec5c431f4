-- The cache file. It may be lost: whatever is not of this shape is moved aside and made anew.

CREATE TABLE checkpoint_cache (
    workflow_id TEXT NOT NULL,
    step_id     TEXT NOT NULL,
    tenant_id   TEXT NOT NULL,
    state_data  BLOB,              -- NULL: this life of the key ended, or its newest state could not be kept
    id          INTEGER,           -- NULL, like revision and the times: PostgreSQL never confirmed the entry
    revision    INTEGER,
    created_at  INTEGER,           -- microseconds since the epoch, PostgreSQL's clock
    updated_at  INTEGER,
    cached_at   INTEGER NOT NULL,  -- milliseconds since the epoch, when PostgreSQL was asked, this machine's clock
    source      TEXT NOT NULL,     -- the DATABASE_URL's hosts, port, database and schema, as a digest; '' without one
    store_id    TEXT,              -- the identity of the store in it, where known
    epoch       INTEGER NOT NULL,  -- which rebuild had begun last when the entry was written
    checksum    INTEGER NOT NULL,
    PRIMARY KEY (workflow_id, step_id)
);

CREATE INDEX checkpoint_cache_ended ON checkpoint_cache (cached_at) WHERE state_data IS NULL;

-- One row: the number of the rebuild that began last, and the count of writes, by which a process notices that somebody
-- has written an older copy into the file.
CREATE TABLE cache_history (epoch INTEGER NOT NULL, writes INTEGER NOT NULL);
INSERT INTO cache_history VALUES (0, 0);

-- Which store each source led to when it was last connected.
CREATE TABLE cache_store (source TEXT PRIMARY KEY, store_id TEXT NOT NULL) WITHOUT ROWID;
