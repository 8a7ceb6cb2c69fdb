"""The same client on the present release of the official Python SDK, as a client of 2026-07-28 only."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types.version import LATEST_MODERN_VERSION

SECONDS = 15


async def sample(*_: object, **__: object) -> types.CreateMessageResult:
    """The client's model."""
    content = types.TextContent(type="text", text="Paris, it says")
    return types.CreateMessageResult(role="assistant", model="m", content=content)


async def list_roots(*_: object, **__: object) -> types.ListRootsResult:
    """The client's roots."""
    return types.ListRootsResult.model_validate({"roots": [{"uri": "file:///sdk/root"}]})


async def elicit(*_: object, **__: object) -> types.ElicitResult:
    """The user."""
    return types.ElicitResult(action="accept", content={"name": "Ada"})


def text(block: Any) -> Any:
    """The text of a block or of a part of a resource."""
    return block.text


def checks(client: Client, logs: "asyncio.Queue[Any]") -> dict[str, Callable[[], Awaitable[Any]]]:
    """What is tried. Each returns what it saw."""

    async def call(name: str, **arguments: Any) -> Any:
        return text((await client.call_tool(f"peer__{name}", arguments)).content[0])

    async def tools() -> Any:
        return [sorted(tool.name for tool in (await client.list_tools()).tools), await call("add", a=19, b=23)]

    async def structured() -> Any:
        return (await client.call_tool("peer__add", {"a": 1, "b": 2})).structured_content

    async def resources() -> Any:
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
        read = await client.read_resource(str(listed[0].uri))
        one = await client.read_resource(templates[0].uri_template.replace("{name}", "Ada"))
        return [text(read.contents[0]), text(one.contents[0])]

    async def prompts() -> Any:
        listed = (await client.list_prompts()).prompts
        return text((await client.get_prompt(listed[0].name, {"name": "Ada"})).messages[0].content)

    async def completion() -> Any:
        reference = types.PromptReference(type="ref/prompt", name="peer__greet")
        return (await client.complete(reference, {"name": "name", "value": "A"})).completion.values

    async def logging() -> Any:
        result = await call("steps")
        async with asyncio.timeout(SECONDS):
            return [result, await logs.get()]

    return {
        "tools": tools,
        "structured": structured,
        "resources": resources,
        "prompts": prompts,
        "completion": completion,
        "sampling": lambda: call("ask_model"),
        "roots": lambda: call("ask_roots"),
        "elicitation": lambda: call("ask_user"),
        "logging": logging,
    }


async def main() -> None:
    """Connect, try everything, print."""
    logs: asyncio.Queue[Any] = asyncio.Queue()

    async def log(params: types.LoggingMessageNotificationParams) -> None:
        logs.put_nowait(params.data)

    async with AsyncExitStack() as stack:
        server: Any = sys.argv[2]
        if sys.argv[1] == "stdio":
            server = stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:]))
        client = Client(
            server,
            read_timeout_seconds=SECONDS,
            mode=LATEST_MODERN_VERSION,
            sampling_callback=sample,
            elicitation_callback=elicit,
            list_roots_callback=list_roots,
            logging_callback=log,
            log_level="info",
            cache=None,
        )
        await stack.enter_async_context(client)
        seen: dict[str, Any] = {"revision": client.protocol_version}
        for name, check in checks(client, logs).items():
            try:
                seen[name] = await check()
            except Exception as error:  # noqa: BLE001 - it is what came of it
                seen[name] = f"{type(error).__name__}: {error}"
    print("SEEN " + json.dumps(seen), flush=True)


asyncio.run(main())
