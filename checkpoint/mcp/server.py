"""The SDK's server, with the tools of `checkpoint.mcp.tools` on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

from mcp.server.caching import CacheHint
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool

from checkpoint import __version__
from checkpoint.mcp.calls import NotBegun
from checkpoint.mcp.tools import BY_NAME, INSTRUCTIONS, TOOLS, Tool

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp.server.session import ServerSession

    from checkpoint.mcp.calls import Calls

    Context = ServerRequestContext[Any, Any]

LISTING_MS = 3_600_000  # what one process lists does not change


def build(calls: Calls) -> Server[Any]:
    """A server whose tools are served by `calls`.

    It needs the streams of `checkpoint.mcp.stdio`, which carry the text of a call's arguments and write the structured
    content.
    """
    listing = ListToolsResult(tools=[_listed(tool) for tool in TOOLS])

    async def list_tools(_context: Context, _params: PaginatedRequestParams | None) -> ListToolsResult:
        return listing

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name[:64]!a}; tools/list names them")
        watcher = Watcher(context.session) if context.meta and "progress_token" in context.meta else None
        try:
            answer = await calls.serve(tool.action, cast("bytes", context.request), watcher)
        except NotBegun:
            raise MCPError(CONNECTION_CLOSED, "the server is ending; this call was not carried out") from None
        if watcher is not None:
            await watcher.finish()
        return CallToolResult(
            content=[TextContent(text=answer.text)], structured_content={}, is_error=not answer.success
        )

    hint = CacheHint(ttl_ms=LISTING_MS, scope="public")
    return Server(
        "checkpoint-manager",
        version=__version__,
        title="Checkpoint manager",
        instructions=INSTRUCTIONS,
        cache_hints={"tools/list": hint, "server/discover": hint},
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _listed(tool: Tool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        annotations=ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


class Watcher:
    """Sends how far a call has come: always the latest, never less than before, and nothing after its result."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._latest: tuple[str, int, int | None] | None = None
        self._sent = -1
        self._sending: asyncio.Task[None] | None = None

    def __call__(self, action: str, done: int, total: int | None) -> None:
        """Takes note, on the thread that serves the call."""
        self._loop.call_soon_threadsafe(self._take, action, done, total)

    async def finish(self) -> None:
        """Waits until what was noted is sent."""
        if self._sending is not None:
            await self._sending

    def _take(self, action: str, done: int, total: int | None) -> None:
        self._latest = action, done, total
        if self._sending is None or self._sending.done():
            self._sending = self._loop.create_task(self._send())

    async def _send(self) -> None:
        while self._latest is not None:
            (action, done, total), self._latest = self._latest, None
            if done > self._sent:
                self._sent = done
                await self._session.report_progress(done, total, f"{action}: {done} rows")
