"""A client on an old release of the official Python SDK: tries all it can, and prints what came of it as JSON.

    python old_client.py stdio COMMAND [ARGUMENT ...] | sse URL | http URL

Runs in the environment of that release, so it uses nothing of this repository, and nothing that 1.7 does not have
without asking.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false, reportDeprecated=false
# The SDK in the development environment is of another generation.

import asyncio
import inspect
import json
import sys
from contextlib import AsyncExitStack
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters, types

SECONDS = 15


async def sample(*_: object) -> types.CreateMessageResult:
    """The client's model."""
    return types.CreateMessageResult(
        role="assistant", model="m", content=types.TextContent(type="text", text="Paris, it says")
    )


async def list_roots(*_: object) -> types.ListRootsResult:
    """The client's roots."""
    return types.ListRootsResult(roots=[types.Root(uri="file:///sdk/root")])


async def elicit(*_: object) -> object:
    """The user."""
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def open_streams(stack: AsyncExitStack, transport: str, rest: list[str]) -> tuple[object, object]:
    """The streams to the server."""
    if transport == "stdio":
        from mcp.client.stdio import stdio_client

        command = StdioServerParameters(command=rest[0], args=rest[1:])
        return await stack.enter_async_context(stdio_client(command))
    if transport == "sse":
        from mcp.client.sse import sse_client

        return await stack.enter_async_context(sse_client(rest[0]))
    from mcp.client.streamable_http import streamablehttp_client

    read, write, _ = await stack.enter_async_context(streamablehttp_client(rest[0]))
    return read, write


def text(result: types.CallToolResult) -> str:
    """The text of a tool result."""
    return result.content[0].text


class Checks:
    """What is tried. Each returns what it saw."""

    def __init__(self, session: ClientSession, logs: "asyncio.Queue[object]") -> None:
        self.session = session
        self.logs = logs

    async def tools(self) -> object:
        names = [tool.name for tool in (await self.session.list_tools()).tools]
        return [sorted(names), text(await self.session.call_tool("peer__add", {"a": 19, "b": 23}))]

    async def structured(self) -> object:
        return getattr(await self.session.call_tool("peer__add", {"a": 1, "b": 2}), "structuredContent", None)

    async def resources(self) -> object:
        listed = (await self.session.list_resources()).resources
        templates = (await self.session.list_resource_templates()).resourceTemplates
        read = await self.session.read_resource(listed[0].uri)
        one = await self.session.read_resource(templates[0].uriTemplate.replace("{name}", "Ada"))
        return [read.contents[0].text, one.contents[0].text]

    async def prompts(self) -> object:
        listed = (await self.session.list_prompts()).prompts
        result = await self.session.get_prompt(listed[0].name, {"name": "Ada"})
        return result.messages[0].content.text

    async def completion(self) -> object:
        kind = types.PromptReference
        reference = kind(type="ref/prompt", name="peer__greet")
        return (await self.session.complete(reference, {"name": "name", "value": "A"})).completion.values

    async def sampling(self) -> object:
        return text(await self.session.call_tool("peer__ask_model", {}))

    async def roots(self) -> object:
        return text(await self.session.call_tool("peer__ask_roots", {}))

    async def elicitation(self) -> object:
        return text(await self.session.call_tool("peer__ask_user", {}))

    async def logging(self) -> object:
        await self.session.set_logging_level("info")
        result = text(await self.session.call_tool("peer__steps", {}))
        async with asyncio.timeout(SECONDS):
            return [result, await self.logs.get()]


async def main() -> None:
    """Connect, try everything, print."""
    logs: asyncio.Queue[object] = asyncio.Queue()

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logs.put_nowait(params.data)

    callbacks = {"sampling_callback": sample, "list_roots_callback": list_roots, "logging_callback": log}
    if "elicitation_callback" in inspect.signature(ClientSession.__init__).parameters:
        callbacks["elicitation_callback"] = elicit
    async with AsyncExitStack() as stack:
        read, write = await open_streams(stack, sys.argv[1], sys.argv[2:])
        session = ClientSession(read, write, timedelta(seconds=SECONDS), **callbacks)
        await stack.enter_async_context(session)
        seen: dict[str, object] = {"revision": (await session.initialize()).protocolVersion}
        checks = Checks(session, logs)
        for name in [name for name in vars(Checks) if not name.startswith("_")]:
            try:
                seen[name] = await getattr(checks, name)()
            except Exception as error:  # noqa: BLE001 - it is what came of it
                seen[name] = f"{type(error).__name__}: {error}"
    print("SEEN " + json.dumps(seen), flush=True)


asyncio.run(main())
