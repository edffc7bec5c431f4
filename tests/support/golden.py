"""Golden conversations: read, replayed and compared as tests/contract/README.md says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.support.worker import Worker

CONVERSATIONS = Path(__file__).resolve().parents[1] / "contract"
PLACEHOLDER = re.compile(r"<([a-z]+)(?::([a-z_0-9]+))?>")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}[+-]\d\d:\d\d")
CACHE_FILES = ("cache.db", "cache.db-wal", "cache.db-shm")


class Start(Protocol):
    """Starts a worker for a conversation with these variables added to its environment."""

    def __call__(self, environment: Mapping[str, str | None]) -> Worker:
        """A started worker."""


class Conversation:
    """One golden file."""

    def __init__(self, path: Path) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        self.name = path.stem
        self.about: str = content["about"]
        self.environment: dict[str, str | None] = content.get("environment", {})
        self.steps: list[dict[str, Any]] = content["steps"]

    def replay(self, start: Start, folder: Path, *, at_once: bool) -> None:
        """Plays the conversation through; `folder` is the worker's data folder.

        Each answer is read before the next request is sent or, with `at_once`, requests are sent as far ahead as they do
        not need an earlier answer.
        """
        worker = start(self.environment)
        same: dict[str, Any] = {}
        for steps in self._runs(at_once=at_once):
            first = steps[0][1]
            if first.get("do") == "delete_cache":
                delete_cache(folder)
            elif first.get("do") == "restart":
                worker.finish()
                worker = start({**self.environment, **first.get("environment", {})})
            else:
                worker.send_raw("".join(_filled(step["send"], same) + "\n" for _, step in steps).encode())
                for number, step in steps:
                    worker.read_line()
                    hold(step, worker.raw[-1], same, f"step {number} of {self.name}")
        worker.finish()

    def _runs(self, *, at_once: bool) -> Iterator[list[tuple[int, dict[str, Any]]]]:
        """The numbered steps, those together that are done in one go."""
        run: list[tuple[int, dict[str, Any]]] = []
        for number, step in enumerate(self.steps, 1):
            stands_alone = not at_once or "do" in step or "do" in run[-1][1] if run else False
            if run and (stands_alone or PLACEHOLDER.search(step["send"])):
                yield run
                run = []
            run.append((number, step))
        yield run


def conversations() -> list[Conversation]:
    """Every golden file, by name."""
    return [Conversation(path) for path in sorted(CONVERSATIONS.glob("*.json"))]


def delete_cache(folder: Path) -> None:
    """The cache file and its companions go, as in a crash that lost them."""
    for name in CACHE_FILES:
        (folder / name).unlink(missing_ok=True)


def hold(step: Mapping[str, Any], line: bytes, same: dict[str, Any], where: str) -> None:
    """Raises AssertionError where the response line is not what the step expects. `same` keeps the named values."""
    text = line.decode("utf-8")
    _compare(step["expect"], json.loads(text), same, f"{where}: response")
    for part in step.get("contains", []):
        assert part in text, f"{where}: the response does not contain {part!r}: {text}"
    for part in step.get("lacks", []):
        assert part not in text, f"{where}: the response contains {part!r}: {text}"


def _filled(text: str, same: Mapping[str, Any]) -> str:
    """The request line with each named placeholder replaced by the value that it stood for so far."""

    def value(found: re.Match[str]) -> str:
        name = found[0][1:-1]
        return json.dumps(same[name])[1:-1] if isinstance(same.get(name), str) else found[0]

    return PLACEHOLDER.sub(value, text)


def _compare(expected: Any, actual: Any, same: dict[str, Any], where: str) -> None:
    if isinstance(expected, dict) and isinstance(actual, dict):
        assert sorted(expected) == sorted(actual), f"{where} has the keys {list(actual)}"
        for key in expected:
            _compare(expected[key], actual[key], same, f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list):
        assert len(expected) == len(actual), f"{where} has {len(actual)} items: {actual}"
        for position, (one, other) in enumerate(zip(expected, actual, strict=True)):
            _compare(one, other, same, f"{where}[{position}]")
    elif isinstance(expected, str) and (placeholder := PLACEHOLDER.fullmatch(expected)):
        kind, name = placeholder.groups()
        assert _is(kind, actual), f"{where} is not a {kind}: {actual!r}"
        if name is not None:
            assert same.setdefault(f"{kind}:{name}", actual) == actual, (
                f"{where} is another {kind} than before: {actual!r}"
            )
    else:
        same_type = type(expected) is type(actual)
        assert (same_type, actual) == (True, expected), f"{where} is {actual!r}, not {expected!r}"


def _is(kind: str, value: Any) -> bool:
    match kind:
        case "time":
            return isinstance(value, str) and TIME.fullmatch(value) is not None
        case "id":
            return isinstance(value, int) and not isinstance(value, bool) and value >= 1
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
        case "string":
            return isinstance(value, str) and value != ""
        case "path":
            return isinstance(value, str) and Path(value).is_absolute()
        case "object":
            return isinstance(value, dict)
        case "any":
            return True
    raise ValueError(f"no placeholder is named {kind}")
