"""A user of an embedded server, as a process: `python -m tests.embedded.user_program FOLDER SETTINGS`.

It acquires the server and obeys, one JSON list a line: ["acquire"], ["release"], ["sql", TEXT]. Each of them, and the first
acquire, is answered by one JSON line: ["ok", RESULT] or ["error", SENTENCE]. At the end of its input it releases.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from checkpoint.embedded import EmbeddedError, EmbeddedServer


def main() -> None:
    """Serves stdin."""
    server = EmbeddedServer(sys.argv[1], settings=json.loads(sys.argv[2]))
    try:
        obey(server, ["acquire"])
        for line in sys.stdin:
            obey(server, json.loads(line))
    finally:
        server.release()


def obey(server: EmbeddedServer, command: list[str]) -> None:
    """Does one thing and prints how it went."""
    try:
        answer = ["ok", result(server, *command)]
    except EmbeddedError as error:
        answer = ["error", str(error)]
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def result(server: EmbeddedServer, verb: str, text: str = "") -> Any:
    """What the command gives: the URL, or the rows, or nothing."""
    if verb == "release":
        return server.release()
    url = server.acquire()
    if verb == "acquire":
        return url
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text.encode())
        return cursor.fetchall() if cursor.description else None


if __name__ == "__main__":
    main()
