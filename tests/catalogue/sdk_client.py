"""Find a tool by a query and call it, with whichever release of the official Python SDK is installed.

    python sdk_client.py QUERY ARGUMENTS stdio COMMAND [ARGUMENT ...] | sse URL | http URL

Prints as JSON what it was listed, found and answered.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false, reportDeprecated=false
# The SDK in the development environment is of one generation only.

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def connect(stack: AsyncExitStack, transport: str, rest: list[str]) -> tuple[Any, str]:
    """A session, and the revision it speaks."""
    try:
        from mcp import Client
    except ImportError:
        session = await _session(stack, transport, rest)
        return session, (await session.initialize()).protocolVersion
    from mcp.types import LATEST_PROTOCOL_VERSION

    server: Any = rest[0]
    if transport == "stdio":
        server = stdio_client(StdioServerParameters(command=rest[0], args=rest[1:]))
    client = await stack.enter_async_context(Client(server, mode=LATEST_PROTOCOL_VERSION))
    return client, client.protocol_version


async def _session(stack: AsyncExitStack, transport: str, rest: list[str]) -> Any:
    if transport == "stdio":
        way = stdio_client(StdioServerParameters(command=rest[0], args=rest[1:]))
    elif transport == "sse":
        from mcp.client.sse import sse_client

        way = sse_client(rest[0])
    else:
        from mcp.client.streamable_http import streamablehttp_client

        way = streamablehttp_client(rest[0])
    read, write, *_ = await stack.enter_async_context(way)
    return await stack.enter_async_context(ClientSession(read, write))


async def main() -> None:
    """List, find, call."""
    query, arguments, transport, *rest = sys.argv[1:]
    async with AsyncExitStack() as stack:
        session, revision = await connect(stack, transport, rest)
        listed = await session.list_tools()
        found = (await session.call_tool("polyplex__find_tools", {"query": query})).content[0].text
        name = found.splitlines()[1].partition("(")[0]
        called = await session.call_tool("polyplex__call_tool", {"name": name, "arguments": json.loads(arguments)})
        seen = {
            "revision": revision,
            "listed": listed.model_dump_json(by_alias=True, exclude_none=True),
            "names": [tool.name for tool in listed.tools],
            "found": found,
            "called": called.content[0].text,
        }
    print("SEEN " + json.dumps(seen), flush=True)


asyncio.run(main())
