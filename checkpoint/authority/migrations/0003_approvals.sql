-- What an approval needs beside its record. Both columns are empty for checkpoints.

ALTER TABLE {schema}.workflow_checkpoints
    ADD COLUMN content_sha256 bytea,
    ADD COLUMN published_on   text;
COMMENT ON COLUMN {schema}.workflow_checkpoints.content_sha256 IS
    'SHA-256 of what the token of an approval binds, where its record holds no token; it shows a change from outside.';
COMMENT ON COLUMN {schema}.workflow_checkpoints.published_on IS
    'The host whose artifacts folder got the output file of an approval.';
