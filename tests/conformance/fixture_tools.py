"""The fixture's tool table: the names that the suite's server scenarios call, with schema and behaviour."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import anyio
import fixture_asks as asks
import mcp_types as types
from fixture_rounds import Call
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
"""A red picture of one pixel."""
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
"""A sound of no samples."""
PAUSE_SECONDS = 0.05
RECONNECT_SECONDS = 0.2
SESSION_SECONDS = 1

Handler: TypeAlias = Callable[[Call], Awaitable[str | list[types.ContentBlock]]]


@dataclass(slots=True)
class ListState:
    """What the two trigger tools change, and where they announce it: to all listeners and all handshake sessions."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    sessions: list[ServerSession] = field(default_factory=list[ServerSession])
    dynamic_tool: bool = False
    dynamic_prompt: bool = False

    async def announce(self, event: ToolsListChanged | PromptsListChanged) -> None:
        """Tell everyone; a session that does not take the notification is forgotten."""
        await self.bus.publish(event)
        for session in tuple(self.sessions):
            tell = session.send_tool_list_changed if isinstance(event, ToolsListChanged) else None
            try:
                async with asyncio.timeout(SESSION_SECONDS):
                    await (tell or session.send_prompt_list_changed)()
            except (TimeoutError, RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                self.sessions.remove(session)


class ToolFailedError(Exception):
    """A tool's own failure: becomes a result with isError."""


async def simple_text(_: Call) -> str:
    """Returns one text block."""
    return "This is a simple text response for testing."


async def image(_: Call) -> list[types.ContentBlock]:
    """Returns one image block."""
    return [types.ImageContent(data=PNG, mime_type="image/png")]


async def audio(_: Call) -> list[types.ContentBlock]:
    """Returns one audio block."""
    return [types.AudioContent(data=WAV, mime_type="audio/wav")]


def embedded(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    """An embedded text resource."""
    return types.EmbeddedResource(resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=text))


async def embedded_resource(_: Call) -> list[types.ContentBlock]:
    """Returns one embedded resource."""
    return [embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


async def mixed_content(_: Call) -> list[types.ContentBlock]:
    """Returns text, an image and an embedded resource."""
    return [
        types.TextContent(text="Multiple content types test:"),
        types.ImageContent(data=PNG, mime_type="image/png"),
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
    ]


async def log(call: Call, text: str) -> None:
    """Log at level info on the call's own stream; in a stateless call only when it asked for that level."""
    request_id = call.ctx.request_id
    session = call.ctx.session
    await session.send_log_message("info", text, related_request_id=request_id)  # pyright: ignore[reportDeprecated]


async def logging_tool(call: Call) -> str:
    """Sends three log messages."""
    await log(call, "Tool execution started")
    await asyncio.sleep(PAUSE_SECONDS)
    await log(call, "Tool processing data")
    await asyncio.sleep(PAUSE_SECONDS)
    await log(call, "Tool execution completed")
    return "Logged three messages"


async def progress_tool(call: Call) -> str:
    """Reports progress three times."""
    for progress in (0, 50, 100):
        await call.ctx.session.report_progress(progress, 100, f"Completed step {progress} of 100")
        await asyncio.sleep(PAUSE_SECONDS)
    return "Reported progress"


async def failing_tool(_: Call) -> str:
    """Fails."""
    raise ToolFailedError("This tool intentionally returns an error for testing")


async def reconnection(call: Call) -> str:
    """Closes its response stream before it answers, so that the client must come back for the answer (SEP-1699)."""
    if call.ctx.close_sse_stream is not None:
        await call.ctx.close_sse_stream()
        await asyncio.sleep(RECONNECT_SECONDS)
    return "Reconnection test completed"


async def mirrored_parameter(call: Call) -> str:
    """Returns the argument that is mirrored into the Mcp-Param-Region header (SEP-2243)."""
    return f"region={call.arguments.get('region', '')}"


async def echo_schema_tool(_: Call) -> str:
    """Exists for its input schema."""
    return "json_schema_2020_12_tool"


async def dynamic(_: Call) -> str:
    """Listed only between two calls of test_trigger_tool_change."""
    return "dynamic"


def change_tools(lists: ListState) -> Handler:
    """The tool that adds or removes test_dynamic_tool and announces the change."""

    async def handler(_: Call) -> str:
        """Changes the tool list and announces it."""
        lists.dynamic_tool = not lists.dynamic_tool
        await lists.announce(ToolsListChanged())
        return "The tool list changed"

    return handler


def change_prompts(lists: ListState) -> Handler:
    """The tool that adds or removes test_dynamic_prompt and announces the change."""

    async def handler(_: Call) -> str:
        """Changes the prompt list and announces it."""
        lists.dynamic_prompt = not lists.dynamic_prompt
        await lists.announce(PromptsListChanged())
        return "The prompt list changed"

    return handler


def strings(*names: str) -> dict[str, Any]:
    """An object schema of required string properties."""
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


REGION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
RICH_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


def tool_table(lists: ListState) -> dict[str, tuple[Handler, dict[str, Any]]]:
    """Every tool that is always there: name to handler and input schema, in listing order."""
    none = {"type": "object", "properties": {}}
    plain: dict[str, Handler] = {
        "test_simple_text": simple_text,
        "test_image_content": image,
        "test_audio_content": audio,
        "test_embedded_resource": embedded_resource,
        "test_multiple_content_types": mixed_content,
        "test_tool_with_logging": logging_tool,
        "test_logging_tool": logging_tool,
        "test_tool_with_progress": progress_tool,
        "test_error_handling": failing_tool,
        "test_reconnection": reconnection,
        "test_elicitation_sep1034_defaults": asks.ask_with_defaults,
        "test_elicitation_sep1330_enums": asks.ask_with_enums,
        "test_streaming_elicitation": asks.ask_name,
        "test_missing_capability": asks.need_sampling_capability,
        "test_input_required_result_elicitation": asks.ask_name,
        "test_input_required_result_sampling": asks.ask_capital,
        "test_input_required_result_list_roots": asks.ask_roots,
        "test_input_required_result_request_state": asks.ask_with_state,
        "test_input_required_result_multiple_inputs": asks.ask_three_kinds,
        "test_input_required_result_multi_round": asks.ask_twice,
        "test_input_required_result_tampered_state": asks.ask_with_state,
        "test_input_required_result_capabilities": asks.ask_what_is_declared,
        "test_trigger_tool_change": change_tools(lists),
        "test_trigger_prompt_change": change_prompts(lists),
    }
    return {
        **{name: (handler, none) for name, handler in plain.items()},
        "test_sampling": (asks.ask_sampling, strings("prompt")),
        "test_elicitation": (asks.ask_elicitation, strings("message")),
        "test_x_mcp_header": (mirrored_parameter, REGION_SCHEMA),
        "json_schema_2020_12_tool": (echo_schema_tool, RICH_SCHEMA),
    }


class Tools:
    """Lists and runs the tool table."""

    def __init__(self, lists: ListState) -> None:
        self._lists = lists
        self._always = tool_table(lists)

    def listed(self) -> list[types.Tool]:
        """The tools of this moment."""
        return [
            types.Tool(name=name, description=handler.__doc__ or name, input_schema=schema)
            for name, (handler, schema) in self._now().items()
        ]

    def schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of a tool, None for an unknown one."""
        entry = self._now().get(name)
        return entry[1] if entry else None

    async def run(self, name: str, call: Call) -> types.CallToolResult:
        """Run one tool.

        Raises:
            MCPError: there is no tool of that name.
        """
        entry = self._now().get(name)
        if entry is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")
        try:
            content = await entry[0](call)
        except ToolFailedError as failure:
            return types.CallToolResult(content=[types.TextContent(text=str(failure))], is_error=True)
        return types.CallToolResult(content=[types.TextContent(text=content)] if isinstance(content, str) else content)

    def _now(self) -> dict[str, tuple[Handler, dict[str, Any]]]:
        if not self._lists.dynamic_tool:
            return self._always
        return {**self._always, "test_dynamic_tool": (dynamic, {"type": "object", "properties": {}})}
