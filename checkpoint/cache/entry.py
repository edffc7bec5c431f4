"""One entry of the cache, with the checksum that is looked at whenever it is read."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import msgspec

from checkpoint.record import Digest

if TYPE_CHECKING:
    from checkpoint.record import Life, Record

ENDED = 2**63 - 1  # as a revision: after every revision of that life


class Entry(msgspec.Struct, frozen=True):
    """What the cache knows of a key. Times as in `Record`; `cached_at` in milliseconds since the epoch.

    `state_data` is None for a life that ended and for a state too large to hold back: such an entry is never served, it
    only keeps older ones from coming back. `id` is None where PostgreSQL never confirmed the entry.
    """

    workflow_id: str
    step_id: str
    tenant_id: str
    state_data: bytes | None
    id: int | None
    revision: int | None
    created_at: int | None
    updated_at: int | None
    cached_at: int
    source: str
    store_id: str | None

    @property
    def key(self) -> tuple[str, str]:
        """The ids that name the checkpoint."""
        return self.workflow_id, self.step_id

    @property
    def size(self) -> int:
        """Bytes of state."""
        return len(self.state_data or b"")

    def checksum(self) -> int:
        """CRC-32 over every field. Ids hold no control characters, so joined they stay apart."""
        head = (
            f"{self.workflow_id}\x1f{self.step_id}\x1f{self.tenant_id}\x1f{self.id}\x1f{self.revision}"
            f"\x1f{self.created_at}\x1f{self.updated_at}\x1f{self.cached_at}\x1f{self.source}\x1f{self.store_id}"
            f"\x1f{'-' if self.state_data is None else '+'}"
        )
        return zlib.crc32(self.state_data or b"", zlib.crc32(head.encode("utf-8", "surrogatepass")))

    def row(self) -> tuple[object, ...]:
        """The values that the statements `put` and `put_lossy` take."""
        return (
            self.workflow_id,
            self.step_id,
            self.tenant_id,
            self.state_data,
            self.id,
            self.revision,
            self.created_at,
            self.updated_at,
            self.cached_at,
            self.source,
            self.store_id,
            self.checksum(),
        )

    def without_state(self) -> Entry:
        """The same moment of the same life, with nothing to serve."""
        return msgspec.structs.replace(self, state_data=None)

    def digest(self) -> Digest:
        """What `verify` compares with PostgreSQL's digest of the same key."""
        import hashlib

        sha256 = hashlib.sha256(self.state_data or b"").digest()
        return Digest(self.workflow_id, self.step_id, self.tenant_id, self.id, self.revision, sha256)


def entry_of(record: Record, cached_at: int, source: str, store_id: str | None) -> Entry:
    """What is kept of a record that the authority at `source` told of."""
    return Entry(
        record.workflow_id,
        record.step_id,
        record.tenant_id,
        record.state_data,
        record.id,
        record.revision,
        record.created_at,
        record.updated_at,
        cached_at,
        source,
        store_id,
    )


def mark_of_end(life: Life, cached_at: int, source: str, store_id: str | None) -> Entry:
    """What keeps older states of a life that ended from coming back."""
    return Entry(
        workflow_id=life.workflow_id,
        step_id=life.step_id,
        tenant_id=life.tenant_id,
        state_data=None,
        id=life.id,
        revision=ENDED,
        created_at=None,
        updated_at=life.ended_at,
        cached_at=cached_at,
        source=source,
        store_id=store_id,
    )
