"""`healthcheck`: whether both sides work, and what this process has done; always a success (contract, section 3)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from checkpoint import __version__
from checkpoint.cache.failure import CacheError
from checkpoint.errors import CheckpointError
from checkpoint.folder import in_utf8

if TYPE_CHECKING:
    from checkpoint.runtime import Runtime


def run(runtime: Runtime, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - every action takes both
    """The state of PostgreSQL, of the cache and of the process."""
    pg, sqlite = _pg(runtime), _sqlite(runtime)
    counters = runtime.counters
    if pg["configured"] and not (pg["ok"] and pg["writable"]):
        status = "down"
    elif pg["ok"] and pg["durable"] and sqlite["ok"]:
        status = "ok"
    else:
        status = "degraded"
    return {
        "status": status,
        "version": __version__,
        "uptime_sec": round(time.monotonic() - counters.started, 3),
        "pg": pg,
        "sqlite": sqlite,
        "counters": {
            "requests": counters.requests,
            "errors": dict(counters.errors),
            "cache_hits": counters.cache_hits,
            "cache_misses": counters.cache_misses,
            "cache_write_failures": runtime.cache.write_failures,
        },
    }


def _pg(runtime: Runtime) -> dict[str, Any]:
    state: dict[str, Any] = dict.fromkeys(
        ("writable", "durable", "row_security", "address", "latency_ms", "server_version", "schema_version", "error")
    )
    state = {"configured": runtime.settings.database_url is not None, "ok": False, **state}
    try:
        authority = runtime.authority
        state["address"] = authority.address()
        health = authority.health()
    except CheckpointError as error:
        state["error"] = error.message
        return state
    state["latency_ms"] = health.latency_ms
    state["ok"] = state["writable"] = health.writable
    state["durable"] = health.durable
    state["row_security"] = health.row_security
    state["server_version"] = health.server_version
    state["schema_version"] = health.schema_version
    if not health.writable:
        state["error"] = "the server only reads; DATABASE_URL must lead to the primary"
    return state


def _sqlite(runtime: Runtime) -> dict[str, Any]:
    state: dict[str, Any] = {"ok": False, "path": in_utf8(runtime.cache.path)}
    try:
        entries, size, mode = runtime.cache.health(runtime.settings.tenant)
    except CacheError as error:
        return state | {"entries": None, "size_bytes": None, "journal_mode": None, "error": str(error)}
    return state | {"ok": True, "entries": entries, "size_bytes": size, "journal_mode": mode, "error": None}
