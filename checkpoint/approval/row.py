"""An approval as PostgreSQL holds it, before anything in it is believed."""

from __future__ import annotations

import msgspec

from checkpoint.record import Record


class ApprovalRow(msgspec.Struct, frozen=True):
    """The row under a key. Times in microseconds since the epoch; `now` is PostgreSQL's clock when it was read.

    `awaiting_since` is None unless the row counts as one that waits. `content_sha256` is the digest of what the token
    binds, where the record itself holds no token; `published_on` the host that published the output file.
    """

    workflow_id: str
    step_id: str
    now: int
    id: int
    tenant_id: str
    kind: str
    state_data: bytes
    revision: int
    write_id: str
    created_at: int
    updated_at: int
    awaiting_since: int | None
    content_sha256: bytes | None
    published_on: str | None

    def record(self) -> Record:
        """What the cache takes over."""
        return Record(
            self.workflow_id,
            self.step_id,
            self.tenant_id,
            self.state_data,
            self.id,
            self.revision,
            self.created_at,
            self.updated_at,
        )


class ApprovalChange(msgspec.Struct, frozen=True):
    """What is written: the columns of `ApprovalRow` of these names."""

    state_data: bytes
    awaiting_since: int | None
    content_sha256: bytes | None
    published_on: str | None = None
