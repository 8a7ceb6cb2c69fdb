"""The official Python SDK's client in both modes, and FastMCP's, behind one interface."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import fastmcp
import fastmcp.client.transports as fastmcp_transports
import mcp_types as types
from fastmcp.client.elicitation import ElicitResult
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.subscriptions import listen
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from tests.interop.clients.interface import ELICITED_NAME, ROOT_URI, SAMPLED_TEXT, Era, Json, Kind, Notices, Target

LISTS = {
    "tools": "list_tools",
    "resources": "list_resources",
    "resourceTemplates": "list_resource_templates",
    "prompts": "list_prompts",
}
CALL_SECONDS = 60


class _PythonClient:
    """What both have in common: the SDK's session underneath."""

    def __init__(self, client: Any, stack: AsyncExitStack, notices: Notices, *, filters_logs: bool) -> None:
        self.filters_logs = filters_logs
        self.loses_last_progress = False
        self.client = client
        self.notices = notices
        self.era: Era = "modern" if client.protocol_version in MODERN_PROTOCOL_VERSIONS else "legacy"
        self._stack = stack

    async def call(self, name: str, arguments: Json) -> Json:
        return _plain(await self._call(name, arguments, None))

    async def _call(self, name: str, arguments: Json, on_progress: Callable[..., Any] | None) -> Any:
        raise NotImplementedError

    async def progress(self, name: str, arguments: Json) -> list[Json]:
        seen: list[Json] = []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            seen.append({"progress": progress, "total": total, "message": message})

        await self._call(name, arguments, report)
        return seen

    async def cancel(self, name: str, arguments: Json) -> None:
        begun = asyncio.Event()

        async def report(*_: object) -> None:
            begun.set()

        async with asyncio.TaskGroup() as tasks:
            call = tasks.create_task(self._call(name, arguments, report))
            async with asyncio.timeout(CALL_SECONDS):
                await begun.wait()
            call.cancel()

    async def level(self, level: Literal["warning", "info"]) -> None:
        if self.era == "legacy":
            await self.client.session.set_logging_level(level)

    async def watch(self, uri: str) -> None:
        if self.era == "legacy":
            await self.client.session.subscribe_resource(uri)
            return
        events = await self._stack.enter_async_context(listen(self.client.session, resource_subscriptions=[uri]))
        group = await self._stack.enter_async_context(asyncio.TaskGroup())

        async def pass_on() -> None:
            async for event in events:
                self.notices.add("notifications/resources/updated", {"uri": str(getattr(event, "uri", ""))})

        self._stack.callback(group.create_task(pass_on()).cancel)


class PythonSdkClient(_PythonClient):
    """The official SDK's client."""

    async def listed(self, kind: Kind) -> list[Json]:
        found: list[Json] = []
        cursor: str | None = None
        while True:
            page = _plain(await getattr(self.client, LISTS[kind])(cursor=cursor, cache_mode="bypass"))
            found += page[kind]
            cursor = page.get("nextCursor")
            if cursor is None:
                return found

    async def _call(self, name: str, arguments: Json, on_progress: Callable[..., Any] | None) -> Any:
        return await self.client.call_tool(name, arguments, CALL_SECONDS, on_progress)

    async def read(self, uri: str) -> Json:
        return _plain(await self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Json:
        return _plain(await self.client.get_prompt(name, arguments))

    async def complete(self, ref: Json, name: str, value: str) -> list[str]:
        answer = await self.client.complete(_reference(ref), {"name": name, "value": value})
        return answer.completion.values


class FastMcpClient(_PythonClient):
    """FastMCP's client."""

    async def listed(self, kind: Kind) -> list[Json]:
        return [_plain(entry) for entry in await getattr(self.client, LISTS[kind])()]

    async def _call(self, name: str, arguments: Json, on_progress: Callable[..., Any] | None) -> Any:
        return await self.client.call_tool_mcp(name, arguments, on_progress, CALL_SECONDS)

    async def read(self, uri: str) -> Json:
        return _plain(await self.client.read_resource_mcp(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> Json:
        return _plain(await self.client.get_prompt_mcp(name, arguments))

    async def complete(self, ref: Json, name: str, value: str) -> list[str]:
        return (await self.client.complete(_reference(ref), {"name": name, "value": value})).values


@asynccontextmanager
async def python_sdk(
    target: Target, era: Era, errors: Path, sampled: str = SAMPLED_TEXT
) -> AsyncGenerator[PythonSdkClient]:
    """Connect with the official SDK, answering to sampling with `sampled`.

    The stderr of a spawned polyplex goes to the file `errors`.
    """
    notices = Notices()
    async with AsyncExitStack() as stack:
        server: Any = target.url
        if target.transport == "sse":
            server = sse_client(target.url)
        elif target.transport == "stdio":
            command, *arguments = target.command
            log = stack.enter_context(errors.open("a", encoding="utf-8"))
            server = stdio_client(StdioServerParameters(command=command, args=arguments), errlog=log)
        client = Client(
            server,
            read_timeout_seconds=CALL_SECONDS,
            mode="legacy" if era == "legacy" else LATEST_MODERN_VERSION,
            sampling_callback=_sampler(sampled),
            elicitation_callback=_elicit,
            list_roots_callback=_roots if target.roots else None,
            logging_callback=_logger(notices),
            log_level="warning",
            message_handler=_listener(notices),
            cache=None,
        )
        await stack.enter_async_context(client)
        yield PythonSdkClient(client, stack, notices, filters_logs=True)


@asynccontextmanager
async def fastmcp_client(target: Target, errors: Path) -> AsyncGenerator[FastMcpClient]:
    """Connect with FastMCP's client, which finds the era out by itself."""
    notices = Notices()
    async with AsyncExitStack() as stack:
        transport: Any
        if target.transport == "stdio":
            command, *arguments = target.command
            transport = fastmcp_transports.StdioTransport(command, arguments, keep_alive=False, log_file=errors)
        elif target.transport == "sse":
            transport = fastmcp_transports.SSETransport(target.url)
        else:
            transport = fastmcp_transports.StreamableHttpTransport(target.url)

        async def sample(*_: object) -> str:
            return SAMPLED_TEXT

        async def elicit(*_: object) -> Any:
            return ElicitResult(action="accept", content={"name": ELICITED_NAME})

        client: Any = fastmcp.Client(
            transport,
            timeout=CALL_SECONDS,
            sampling_handler=sample,
            elicitation_handler=elicit,
            roots=[ROOT_URI] if target.roots else None,
            log_handler=_logger(notices),
            message_handler=_listener(notices),
            cache=False,
        )
        await stack.enter_async_context(client)
        # It asks modern servers for all messages.
        legacy = client.protocol_version not in MODERN_PROTOCOL_VERSIONS
        yield FastMcpClient(client, stack, notices, filters_logs=legacy)


def _plain(model: Any) -> Json:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _reference(ref: Json) -> types.PromptReference | types.ResourceTemplateReference:
    if ref["type"] == "ref/prompt":
        return types.PromptReference(type="ref/prompt", name=ref["name"])
    return types.ResourceTemplateReference(type="ref/resource", uri=ref["uri"])


def _sampler(text: str) -> Any:
    async def sample(*_: object, **__: object) -> types.CreateMessageResult:
        content = types.TextContent(type="text", text=text)
        return types.CreateMessageResult(role="assistant", model="interop", content=content)

    return sample


async def _elicit(*_: object, **__: object) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": ELICITED_NAME})


async def _roots(*_: object, **__: object) -> types.ListRootsResult:
    return types.ListRootsResult.model_validate({"roots": [{"uri": ROOT_URI, "name": "root"}]})


def _logger(notices: Notices) -> Any:
    async def log(params: types.LoggingMessageNotificationParams) -> None:
        notices.add("notifications/message", _plain(params))

    return log


def _listener(notices: Notices) -> Any:
    async def listener(message: Any) -> None:
        if not isinstance(message, Exception) and message.method != "notifications/message":
            notices.add(message.method, _plain(message).get("params", {}))

    return listener
