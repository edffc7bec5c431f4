"""One request, one answer, in one line of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.worker import Worker


def done(worker: Worker, action: str, **fields: object) -> dict[str, Any]:
    """The data of an answer that has to be a success."""
    answer = worker.request({"action": action, **fields})
    assert answer["success"], f"{answer}; stderr: {worker.stderr[-3000:]}"
    data: dict[str, Any] = answer["data"]
    return data


def refused(worker: Worker, action: str, **fields: object) -> tuple[str, str]:
    """Code and error of an answer that has to be a failure."""
    answer = worker.request({"action": action, **fields})
    assert not answer["success"], answer
    return answer["code"], answer["error"]


def pages(worker: Worker, action: str, rows: str, **fields: object) -> list[list[dict[str, Any]]]:
    """The rows of every page, from the first to the one without a next_cursor."""
    found = []
    cursor: dict[str, object] = {}
    while True:
        page = done(worker, action, **fields, **cursor)
        assert page["count"] == len(page[rows])
        found.append(page[rows])
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}
