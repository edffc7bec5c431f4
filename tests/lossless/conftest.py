"""Fixtures of these tests."""

from __future__ import annotations

from tests.support.place import key, place, tenant, workflow

__all__ = ["key", "place", "tenant", "workflow"]
