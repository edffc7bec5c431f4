"""The checkpoint as it travels between the authority, the cache and the answer."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

DEFAULT_TENANT = "default"  # of requests that name none


class Instant(msgspec.Struct, frozen=True):
    """A moment, in microseconds since the epoch; the envelope writes it in the zone of the settings."""

    micros: int


class Record(msgspec.Struct, frozen=True):
    """One stored checkpoint.

    `state_data` is the JSON text as it was sent (contract, section 2). `id`, `revision`, `created_at` and `updated_at`
    are None where PostgreSQL never confirmed the record; the times are microseconds since the epoch.
    """

    workflow_id: str
    step_id: str
    tenant_id: str
    state_data: bytes
    id: int | None = None
    revision: int | None = None
    created_at: int | None = None
    updated_at: int | None = None

    def row(self) -> dict[str, object]:
        """The fields that `get` and `cached_get` answer for a checkpoint that was found (contract, section 3)."""
        return {
            "id": self.id,
            "tenant_id": self.tenant_id,
            "state_data": self.state_data,
            "revision": self.revision,
            "created_at": instant(self.created_at),
            "updated_at": instant(self.updated_at),
        }


def instant(micros: int | None) -> Instant | None:
    """The moment, or None for an unknown one."""
    return None if micros is None else Instant(micros)


class State(NamedTuple):
    """A state on its way to the authority."""

    workflow_id: str
    step_id: str
    tenant_id: str
    state_data: bytes


class Digest(msgspec.Struct, frozen=True):
    """What identifies a stored state without the state: SHA-256 of its text (32 bytes)."""

    workflow_id: str
    step_id: str
    tenant_id: str
    id: int | None
    revision: int | None
    sha256: bytes

    @property
    def key(self) -> tuple[str, str]:
        """The ids that name the checkpoint."""
        return self.workflow_id, self.step_id


class Life(msgspec.Struct, frozen=True):
    """A life of a key that ended: the row `id` was deleted, and a later save of the key makes a larger one.

    `ended_at` is PostgreSQL's clock, in microseconds since the epoch.
    """

    workflow_id: str
    step_id: str
    tenant_id: str
    id: int
    ended_at: int


class Workflow(msgspec.Struct, frozen=True):
    """A workflow of one tenant, as `workflows` lists it; the time in microseconds since the epoch."""

    workflow_id: str
    tenant_id: str
    checkpoint_count: int
    last_updated_at: int
