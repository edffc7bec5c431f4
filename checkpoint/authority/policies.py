"""What row-level security refuses, told apart from missing grants and from rows that are simply not there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint.errors import OTHER_TENANT, CheckpointError

if TYPE_CHECKING:
    from psycopg import Cursor

    from checkpoint.authority.session import Session


def hides_rows(session: Session, cursor: Cursor[Any], tenant_id: str) -> bool:
    """Whether policies bind the role, so that a row may stand that it does not see."""
    return bool(_binding(session, cursor, tenant_id)[0])


def refuse_by_policies(session: Session, cursor: Cursor[Any], tenant_id: str) -> None:
    """Raises TENANT_CONFLICT or TENANT_DENIED for a write refused with 42501, unless it is a grant that is missing."""
    bound, allowed, granted = _binding(session, cursor, tenant_id)
    if not (bound and granted):
        return
    if allowed:
        raise CheckpointError("TENANT_CONFLICT", OTHER_TENANT) from None
    raise CheckpointError("TENANT_DENIED", "the role of DATABASE_URL is bound to another tenant") from None


def _binding(session: Session, cursor: Cursor[Any], tenant_id: str) -> tuple[Any, ...]:
    row = cursor.execute(session.statement("binding"), {"tenant_id": tenant_id}).fetchone()
    return row or (False, False, False)
