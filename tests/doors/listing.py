"""Prints what tools/list answers, for the golden file: python -m tests.doors.listing > tests/doors/tools.golden.json."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from mcp import Client

from checkpoint.log import Log
from checkpoint.mcp.calls import Calls
from checkpoint.mcp.server import build
from checkpoint.runtime import Runtime
from checkpoint.settings import load


async def listing() -> list[dict[str, Any]]:
    """The tools, asked for within this process."""
    async with Client(build(Calls(Runtime(load({}), {}, Log(50))))) as client:
        listed = await client.list_tools()
    return [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in listed.tools]


if __name__ == "__main__":
    json.dump(asyncio.run(listing()), sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
