"""What the methods of CheckpointManager return: the `data` of the answers, under the names of contract, section 3.

What an answer leaves out is None. A state is kept as its JSON text (contract, section 2) and read when it is asked for.
"""

from __future__ import annotations

import json
from datetime import datetime  # noqa: TC003 - msgspec reads the annotations when it decodes
from typing import Any, Literal, cast

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One answer. Times are aware datetimes in the zone of the settings."""


class Key(Result, frozen=True, kw_only=True):
    """A checkpoint, by its ids; of `verify` one that was found on one side only."""

    workflow_id: str
    step_id: str


class Keyed(Key, frozen=True, kw_only=True):
    """About one key of one tenant."""

    tenant_id: str


class Page(Result, frozen=True, kw_only=True):
    """One page; `next_cursor` continues it and is None at the end."""

    tenant_id: str | None
    count: int
    next_cursor: str | None


class WithState(Result, frozen=True, kw_only=True):
    """What may hold a state."""

    state_json: msgspec.Raw = msgspec.field(name="state_data", default=msgspec.Raw(b"null"))

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name)!r}" for name in self.__struct_fields__ if name != "state_json"]
        return f"{type(self).__name__}(state_text={self.state_text!r}, {', '.join(fields)})"

    @property
    def state_text(self) -> str | None:
        """The state as the JSON text that was saved; None where there is none."""
        return None if (text := bytes(self.state_json).decode()) == "null" else text

    @property
    def state_data(self) -> dict[str, Any] | None:
        """The state as a dict, made anew at every access; None where there is none. Of a key given twice the last wins.

        Raises ValueError for a number, RecursionError for a nesting, that `json` does not take; see `state_text`.
        """
        return cast("dict[str, Any] | None", json.loads(bytes(self.state_json)))


class Saved(Keyed, frozen=True, kw_only=True):
    """Of `save`."""

    id: int
    created_at: datetime
    updated_at: datetime
    revision: int
    cache_written: bool
    authority_source: Literal["pg"]


class Found(WithState, frozen=True, kw_only=True):
    """What a read of one checkpoint found; where `found` is False, only the ids asked for are set."""

    workflow_id: str
    step_id: str
    tenant_id: str | None
    found: bool
    id: int | None = None
    revision: int | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Got(Found, frozen=True, kw_only=True):
    """Of `get`."""

    authority_source: Literal["pg", "none"]


class CachedGot(Found, frozen=True, kw_only=True):
    """Of `cached_get`: a row without `id` and `revision` is one that PostgreSQL never confirmed."""

    source: Literal["sqlite", "pg", "none"]
    authority_source: Literal["sqlite", "pg", "none"]
    backfilled: bool
    stale: bool
    cached_at: datetime | None = None


class Checkpoint(WithState, frozen=True, kw_only=True):
    """A row of `list`; without a state where `include_state` was False."""

    workflow_id: str
    step_id: str
    tenant_id: str
    id: int
    revision: int
    created_at: datetime
    updated_at: datetime


class CheckpointPage(Page, frozen=True, kw_only=True):
    """Of `list`."""

    workflow_id: str
    checkpoints: list[Checkpoint]
    authority_source: Literal["pg"]


class Workflow(Result, frozen=True, kw_only=True):
    """A row of `workflows`."""

    workflow_id: str
    tenant_id: str
    checkpoint_count: int
    last_updated_at: datetime


class WorkflowPage(Page, frozen=True, kw_only=True):
    """Of `workflows`."""

    workflows: list[Workflow]


class Cached(Keyed, frozen=True, kw_only=True):
    """Of `cache`."""

    written: bool
    cached_at: datetime | None
    lossy: Literal[True]


class Rebuilt(Result, frozen=True, kw_only=True):
    """Of `rebuild`."""

    tenant_id: str
    workflow_id: str | None
    pg_read_count: int
    deleted_before: int
    rebuilt_count: int
    elapsed_sec: float
    truncated: bool


class Mismatch(Key, frozen=True, kw_only=True):
    """A checkpoint that `verify` found to differ."""

    reason: Literal["behind", "ahead", "no_revision", "damaged"]


class Mismatches(Result, frozen=True, kw_only=True):
    """The differences of `verify`, at most 1000 of a kind."""

    cache_only: list[Key]
    pg_only: list[Key]
    data_mismatch: list[Mismatch]


class MismatchCounts(Result, frozen=True, kw_only=True):
    """How many differences there are of each kind."""

    cache_only: int
    pg_only: int
    data_mismatch: int


class Verified(Result, frozen=True, kw_only=True):
    """Of `verify`."""

    workflow_id: str | None
    tenant_id: str | None
    consistent: bool
    pg_count: int
    sqlite_count: int
    mismatches: Mismatches
    mismatch_counts: MismatchCounts
    report_path: str | None
    checked_at: datetime
    elapsed_sec: float
    report_error: str | None = None


class Deleted(Result, frozen=True, kw_only=True):
    """Of `delete`."""

    workflow_id: str
    step_id: str | None
    tenant_id: str
    deleted_count: int


class Pruned(Result, frozen=True, kw_only=True):
    """Of `prune`."""

    workflow_id: str | None
    tenant_id: str | None
    deleted_count: int
    dry_run: bool


class PostgresHealth(Result, frozen=True, kw_only=True):
    """What `healthcheck` says of PostgreSQL."""

    configured: bool
    ok: bool
    writable: bool | None
    durable: bool | None
    row_security: bool | None
    address: str | None
    latency_ms: float | None
    server_version: str | None
    schema_version: int | None
    error: str | None


class CacheHealth(Result, frozen=True, kw_only=True):
    """What `healthcheck` says of the cache."""

    ok: bool
    path: str
    entries: int | None
    size_bytes: int | None
    journal_mode: str | None
    error: str | None


class Counters(Result, frozen=True, kw_only=True):
    """What one manager has done since it was made."""

    requests: int
    errors: dict[str, int]
    cache_hits: int
    cache_misses: int
    cache_write_failures: int


class Health(Result, frozen=True, kw_only=True):
    """Of `healthcheck`."""

    status: Literal["ok", "degraded", "down"]
    version: str
    uptime_sec: float
    pg: PostgresHealth
    sqlite: CacheHealth
    counters: Counters


class Approval(Keyed, frozen=True, kw_only=True):
    """Of `request_approval`, `approve` and `reject` (contract, section 5); `output` is an absolute path."""

    status: Literal["none", "awaiting-approval", "completed", "rejected"]
    needs_report: bool
    created: bool
    input_hash: str
    approval_token: str | None
    report: str | None
    output: str | None
    verified: bool
    already_completed: bool
    already_rejected: bool
    expired: bool
    requested_at: datetime | None
    expires_at: datetime | None
    decided_at: datetime | None
    decided_by: str | None
    reason: str | None


class WaitingApproval(Keyed, frozen=True, kw_only=True):
    """A row of `pending`; where `corrupt` is True, only its ids and `requested_at` are set."""

    status: Literal["awaiting-approval"]
    input_hash: str | None
    approval_token: str | None
    report: str | None
    output: str | None
    expired: bool
    requested_at: datetime
    expires_at: datetime | None
    corrupt: bool


class PendingPage(Page, frozen=True, kw_only=True):
    """Of `pending`."""

    pending: list[WaitingApproval]
