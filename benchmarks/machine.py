"""What a run was made on: a figure without its machine and versions says little."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib import metadata
from typing import Any

PACKAGES = (
    "psycopg",
    "psycopg-binary",
    "msgspec",
    "orjson",
    "jsonschema-rs",
    "langgraph-checkpoint",
    "langgraph-checkpoint-postgres",
    "langgraph-checkpoint-sqlite",
)


def machine() -> dict[str, Any]:
    """Processor, memory and system; no name of the host."""
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def versions() -> dict[str, str]:
    """Of Python, SQLite and the packages that are there."""
    found = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _field(path: str, name: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), None)
