"""The Python door: one typed method an action (contract, section 3). It adds no rule of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from checkpoint import results
from checkpoint.in_process import InProcess

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

State = dict[str, Any] | str | bytes
"""A state as a dict, or as JSON text, which is stored as it is."""

OnProgress = Callable[[int, int | None], None]
"""Takes the rows done and the rows there are, which is None until the end (see checkpoint.progress)."""


class CheckpointManager(InProcess):
    """The actions as methods, on one connection and one cache, for as long as the manager is open.

        with CheckpointManager(database_url="postgresql://user@host/db") as manager:
            manager.save("wf_001", "step_1", {"progress": 30})
            print(manager.cached_get("wf_001", "step_1").state_data)

    The keyword arguments are those of ManagerSettings. Every method raises CheckpointError, whose `code` is one of
    contract, section 4, and returns a record of `checkpoint.results`. An argument left out, or None, is absent from the
    request. Nothing is connected or opened before a method needs it.

    Threads may share a manager: calls are served one after the other. Processes may not: after a fork make a new one in
    the child. Methods raise RuntimeError in a process that did not make the manager, and after `close`. Log lines go to
    stderr; stdout is not touched.

    Ctrl-C ends the call under way, its statement in PostgreSQL too; whether that was done already a get tells. The
    manager can be used on.

    Raises SettingsError for a setting that cannot be used, TypeError for one that does not exist.
    """

    def __enter__(self) -> Self:
        """The manager itself; `close` is called at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def save(
        self,
        workflow_id: str,
        step_id: str,
        state_data: State,
        *,
        tenant_id: str | None = None,
        expected_revision: int | None = None,
    ) -> results.Saved:
        """Stores a state in PostgreSQL, then in the cache (contract, section 3, save).

        A dict is written as Python's `json` writes it, but NaN and Infinity are INVALID_JSON. Text is stored as it is.
        """
        return self._ask(
            "save",
            results.Saved,
            workflow_id=workflow_id,
            step_id=step_id,
            tenant_id=tenant_id,
            expected_revision=expected_revision,
            state_data=state_data,
        )

    def get(self, workflow_id: str, step_id: str, *, tenant_id: str | None = None) -> results.Got:
        """The checkpoint as PostgreSQL has it; `found` is False where there is none (contract, section 3, get)."""
        return self._ask("get", results.Got, workflow_id=workflow_id, step_id=step_id, tenant_id=tenant_id)

    def list(
        self,
        workflow_id: str,
        *,
        tenant_id: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        include_state: bool | None = None,
    ) -> results.CheckpointPage:
        """One page of a workflow's checkpoints, last saved first (contract, section 3, list)."""
        return self._ask(
            "list",
            results.CheckpointPage,
            workflow_id=workflow_id,
            tenant_id=tenant_id,
            limit=limit,
            cursor=cursor,
            include_state=include_state,
        )

    def workflows(
        self, *, tenant_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> results.WorkflowPage:
        """One page of the workflows that have checkpoints, last saved first (contract, section 3, workflows)."""
        return self._ask("workflows", results.WorkflowPage, tenant_id=tenant_id, limit=limit, cursor=cursor)

    def cache(
        self, workflow_id: str, step_id: str, state_data: State, *, tenant_id: str | None = None
    ) -> results.Cached:
        """Stores a state in the cache alone, where it may be lost at any time (contract, section 3, cache)."""
        return self._ask(
            "cache",
            results.Cached,
            workflow_id=workflow_id,
            step_id=step_id,
            tenant_id=tenant_id,
            state_data=state_data,
        )

    def cached_get(
        self, workflow_id: str, step_id: str, *, tenant_id: str | None = None, allow_stale: bool | None = None
    ) -> results.CachedGot:
        """The checkpoint from the cache where that may serve it, else from PostgreSQL (contract, section 3)."""
        return self._ask(
            "cached_get",
            results.CachedGot,
            workflow_id=workflow_id,
            step_id=step_id,
            tenant_id=tenant_id,
            allow_stale=allow_stale,
        )

    def rebuild(
        self, *, tenant_id: str | None = None, workflow_id: str | None = None, on_progress: OnProgress | None = None
    ) -> results.Rebuilt:
        """Fills a tenant's cache anew from PostgreSQL (contract, section 3, rebuild).

        `on_progress` is called on this thread; it must not raise, nor call this manager.
        """
        return self._ask("rebuild", results.Rebuilt, on_progress, tenant_id=tenant_id, workflow_id=workflow_id)

    def verify(
        self, *, workflow_id: str | None = None, tenant_id: str | None = None, on_progress: OnProgress | None = None
    ) -> results.Verified:
        """Compares cache and PostgreSQL and writes a report (contract, section 3, verify).

        `on_progress` is called on this thread; it must not raise, nor call this manager.
        """
        return self._ask("verify", results.Verified, on_progress, workflow_id=workflow_id, tenant_id=tenant_id)

    def delete(
        self,
        workflow_id: str,
        step_id: str | None = None,
        *,
        all_steps: bool | None = None,
        tenant_id: str | None = None,
    ) -> results.Deleted:
        """Deletes one step, or with `all_steps` a workflow; it cannot be undone (contract, section 3, delete)."""
        return self._ask(
            "delete",
            results.Deleted,
            workflow_id=workflow_id,
            step_id=step_id,
            all_steps=all_steps,
            tenant_id=tenant_id,
        )

    def prune(
        self,
        older_than_sec: int,
        *,
        workflow_id: str | None = None,
        tenant_id: str | None = None,
        all_tenants: bool | None = None,
        dry_run: bool | None = None,
    ) -> results.Pruned:
        """Deletes what was not saved for that long; it cannot be undone (contract, section 3, prune)."""
        return self._ask(
            "prune",
            results.Pruned,
            older_than_sec=older_than_sec,
            workflow_id=workflow_id,
            tenant_id=tenant_id,
            all_tenants=all_tenants,
            dry_run=dry_run,
        )

    def healthcheck(self) -> results.Health:
        """Whether PostgreSQL and the cache serve, and what this manager has done (contract, section 3, healthcheck)."""
        return self._ask("healthcheck", results.Health)

    def request_approval(
        self,
        workflow_id: str,
        step_id: str,
        *,
        input: object = None,  # noqa: A002 - the contract's name for it
        input_hash: str | None = None,
        report: str | None = None,
        output: str | None = None,
        tenant_id: str | None = None,
        expires_in_sec: int | None = None,
        renew: bool | None = None,
    ) -> results.Approval:
        """Asks a person, or tells what came of it (contract, section 5, request_approval).

        `input` is any JSON value; bytes are JSON text, taken as it is, so that the spelling of numbers enters the hash.
        """
        return self._ask(
            "request_approval",
            results.Approval,
            workflow_id=workflow_id,
            step_id=step_id,
            input=input,
            input_hash=input_hash,
            report=report,
            output=output,
            tenant_id=tenant_id,
            expires_in_sec=expires_in_sec,
            renew=renew,
        )

    def approve(
        self,
        workflow_id: str,
        step_id: str,
        token: str,
        *,
        input: object = None,  # noqa: A002 - the contract's name for it
        input_hash: str | None = None,
        by: str | None = None,
        reason: str | None = None,
        tenant_id: str | None = None,
    ) -> results.Approval:
        """Says yes: the report is written, exactly once (contract, section 5, approve). `input` as in the question."""
        return self._ask(
            "approve",
            results.Approval,
            workflow_id=workflow_id,
            step_id=step_id,
            token=token,
            input=input,
            input_hash=input_hash,
            by=by,
            reason=reason,
            tenant_id=tenant_id,
        )

    def reject(
        self,
        workflow_id: str,
        step_id: str,
        token: str,
        *,
        input: object = None,  # noqa: A002 - the contract's name for it
        input_hash: str | None = None,
        by: str | None = None,
        reason: str | None = None,
        tenant_id: str | None = None,
    ) -> results.Approval:
        """Says no: nothing is written (contract, section 5, reject). `input` as in the question."""
        return self._ask(
            "reject",
            results.Approval,
            workflow_id=workflow_id,
            step_id=step_id,
            token=token,
            input=input,
            input_hash=input_hash,
            by=by,
            reason=reason,
            tenant_id=tenant_id,
        )

    def pending(
        self, *, tenant_id: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> results.PendingPage:
        """One page of the approvals that wait, first asked first (contract, section 5, pending)."""
        return self._ask("pending", results.PendingPage, tenant_id=tenant_id, limit=limit, cursor=cursor)
