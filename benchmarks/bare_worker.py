"""The yardstick of the pipe: what a host would write in an evening. No cache, no checks, and JSON kept as jsonb.

Takes the URL of a database as its argument. Serves `save` on stdin and everything else as a read.
"""

from __future__ import annotations

import sys
from typing import Any

import orjson
import psycopg

TABLE = """
CREATE TABLE IF NOT EXISTS bare_checkpoints (
    id bigint GENERATED ALWAYS AS IDENTITY,
    workflow_id text,
    step_id text,
    tenant_id text DEFAULT 'default',
    state_data jsonb,
    created_at timestamptz DEFAULT now(),
    updated_at timestamptz DEFAULT now(),
    UNIQUE (workflow_id, step_id)
)
"""
UPSERT = """
INSERT INTO bare_checkpoints (workflow_id, step_id, state_data) VALUES (%s, %s, %s)
ON CONFLICT (workflow_id, step_id) DO UPDATE SET state_data = EXCLUDED.state_data, updated_at = now()
RETURNING id, created_at, updated_at
"""
SELECT = """
SELECT id, created_at, updated_at, state_data FROM bare_checkpoints WHERE workflow_id = %s AND step_id = %s
"""


def save(connection: psycopg.Connection[Any], request: dict[str, Any]) -> dict[str, Any]:
    """The upsert, and what it returns."""
    state = orjson.dumps(request["state_data"]).decode()
    row = connection.execute(UPSERT, (request["workflow_id"], request["step_id"], state)).fetchone()
    return dict(zip(("id", "created_at", "updated_at"), row or (), strict=True))


def read(connection: psycopg.Connection[Any], request: dict[str, Any]) -> dict[str, Any]:
    """The row of the key."""
    row = connection.execute(SELECT, (request["workflow_id"], request["step_id"])).fetchone()
    return dict(zip(("id", "created_at", "updated_at", "state_data"), row or (), strict=True))


def main(database_url: str) -> None:
    """Answers every line of stdin with a line on stdout."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(TABLE)
        for line in sys.stdin.buffer:
            request = orjson.loads(line)
            data = (save if request["action"] == "save" else read)(connection, request)
            data["workflow_id"] = request["workflow_id"]
            sys.stdout.buffer.write(orjson.dumps({"success": True, "data": data, "error": None, "code": None}) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1])
