"""The SDK's own client on a `runner.py --mcp` process, spoken to from tests that know nothing of event loops."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import CallToolResult, TextContent

from checkpoint.mcp.tools import TOOLS
from tests.support.environment import worker_environment
from tests.support.worker import PATIENCE, RUNNER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from anyio.from_thread import BlockingPortal

    from tests.support.responses import Responses

TOOL_OF = {tool.action: tool.name for tool in TOOLS}
MODES = {"2025-11-25": "legacy", "2026-07-28": "auto"}
"""How the client is told to open a connection in each era of the protocol."""


class Session:
    """A connected client. Each envelope that it reads is held to the schemas by `responses`."""

    def __init__(self, portal: BlockingPortal, client: Client, responses: Responses) -> None:
        self._portal = portal
        self._client = client
        self._responses = responses

    @property
    def protocol_version(self) -> str:
        """What the two agreed on."""
        return self._client.protocol_version

    def listing(self) -> list[dict[str, Any]]:
        """The tools as the host sees them."""
        listed = self._portal.call(self._client.list_tools)
        return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed.tools]

    def call(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> CallToolResult:
        """The result of one call."""
        return self._portal.call(partial(self._call, tool, arguments, **options))

    def call_at_once(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[CallToolResult]:
        """The results of calls that are all under way at the same time, in their order."""
        started = [self._portal.start_task_soon(partial(self._call, tool, arguments)) for tool, arguments in calls]
        return [future.result(PATIENCE) for future in started]

    def ask(self, action: str, arguments: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """The envelope of an action, the same as text and as structured content, and true to its schema."""
        envelope: dict[str, Any] = json.loads(self.ask_text(action, arguments, **options))
        return envelope

    def ask_text(self, action: str, arguments: Mapping[str, Any], **options: Any) -> str:
        """The same as the text that came."""
        result = self.call(TOOL_OF[action], arguments, **options)
        (content,) = result.content
        assert isinstance(content, TextContent)
        envelope = self._responses.check(content.text.encode(), action)
        assert result.structured_content == envelope
        assert result.is_error is not envelope["success"]
        return content.text

    async def _call(self, tool: str, arguments: Mapping[str, Any], **options: Any) -> CallToolResult:
        return await self._client.call_tool(tool, dict(arguments), read_timeout_seconds=PATIENCE, **options)


@contextmanager
def session(
    settings: Mapping[str, str | None], responses: Responses, folder: Path, mode: str = "auto"
) -> Iterator[Session]:
    """A client on a server with these settings; `folder` gets what the server says on stderr, which must be nothing."""
    stderr = folder / "mcp.stderr"
    parameters = StdioServerParameters(
        command=sys.executable, args=[str(RUNNER), "--mcp"], env=worker_environment(settings)
    )
    with stderr.open("w") as errlog, start_blocking_portal() as portal:
        client = Client(stdio_client(parameters, errlog=errlog), mode=mode)
        with portal.wrap_async_context_manager(client):
            yield Session(portal, client, responses)
    assert stderr.read_text(encoding="utf-8") == ""


Progress = tuple[float, float | None]


def noted() -> tuple[list[Progress], Callable[..., Any]]:
    """A list, and a callback for the SDK that adds every notification to it."""
    notes: list[Progress] = []

    async def note(done: float, total: float | None, _message: str | None) -> None:
        notes.append((done, total))

    return notes, note
