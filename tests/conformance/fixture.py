"""The server that the conformance suite is run against: all names its server scenarios use, on the official SDK.

One endpoint, /mcp, speaks both eras. `--era` closes one of them, to see what a gateway makes of the other.

    python tests/conformance/fixture.py [--port 3001] [--era both|legacy|modern]
"""

import argparse
import itertools
import json
import socket
import warnings
from collections import deque
from collections.abc import Mapping
from typing import Any, get_args

import fixture_content as content
import mcp_types as types
import uvicorn
from fixture_rounds import Answer, Call, InputNeededError
from fixture_tools import ListState, Tools
from mcp.server import NotificationOptions, Server, ServerRequestContext
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.context import CallNext, HandlerResult
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Receive, Scope, Send

STATE_KEY = b"conformance fixture, not a secret, 32 bytes or more"
MAX_EVENTS = 2000
RETRY_MILLISECONDS = 100
METHOD_NOT_ALLOWED = 405
CACHE_HINTS: dict[CacheableMethod, CacheHint] = dict.fromkeys(get_args(CacheableMethod), CacheHint())


class RecentEvents(EventStore):
    """The newest events of all streams, for replay. Event ids are drawn from one sequence."""

    def __init__(self) -> None:
        self._events: deque[tuple[int, str, types.JSONRPCMessage | None]] = deque(maxlen=MAX_EVENTS)
        self._sequence = itertools.count(1)

    async def store_event(self, stream_id: str, message: types.JSONRPCMessage | None) -> str:
        number = next(self._sequence)
        self._events.append((number, stream_id, message))
        return str(number)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        stream = next((name for number, name, _ in self._events if str(number) == last_event_id), None)
        if stream is None:
            return None
        missed = [event for event in self._events if event[1] == stream and event[0] > int(last_event_id)]
        for number, _, message in missed:
            if message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class FixtureServer(Server[dict[str, Any]]):
    """Declares list changes in the handshake too, which the SDK's HTTP application cannot be told to do."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> Any:
        changes = NotificationOptions(prompts_changed=True, resources_changed=False, tools_changed=True)
        return super().create_initialization_options(changes, experimental_capabilities, extensions)


def _call(ctx: ServerRequestContext, params: types.CallToolRequestParams | types.GetPromptRequestParams) -> Call:
    responses: Mapping[str, Answer] = params.input_responses or {}
    return Call(ctx, params.arguments or {}, responses, params.request_state)


class Handlers:
    """The fixture's answer to each method; its own lists, so that fixtures in one process do not meet."""

    def __init__(self) -> None:
        self.lists = ListState()
        self.tools = Tools(self.lists)

    async def call_tool(
        self, ctx: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        try:
            return await self.tools.run(params.name, _call(ctx, params))
        except InputNeededError as needed:
            return needed.result

    async def get_prompt(
        self, ctx: ServerRequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        try:
            return await content.prompt(params.name, _call(ctx, params))
        except InputNeededError as needed:
            return needed.result

    async def list_tools(self, *_: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.tools.listed())

    async def list_prompts(self, *_: object) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=content.prompts(self.lists))

    async def list_resources(self, *_: object) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=content.resources())

    async def list_templates(self, *_: object) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=content.templates())

    async def read_resource(
        self, ctx: ServerRequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return content.read(str(params.uri), modern=ctx.protocol_version in MODERN_PROTOCOL_VERSIONS)

    async def complete(self, _: ServerRequestContext, params: types.CompleteRequestParams) -> types.CompleteResult:
        return content.complete(params.argument.value)

    async def accept(self, *_: object) -> types.EmptyResult:
        """logging/setLevel, resources/subscribe and resources/unsubscribe."""
        return types.EmptyResult()

    async def remember_session(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """A middleware that keeps the handshake sessions, for list changes."""
        if ctx.method == "notifications/initialized":
            self.lists.sessions.append(ctx.session)
        return await call_next(ctx)


def build_server() -> FixtureServer:
    """The server with all its handlers."""
    handlers = Handlers()
    server = FixtureServer(
        "conformance-fixture",
        version="1.0.0",
        instructions="Call the tools by the names that the conformance scenarios use.",
        cache_hints=CACHE_HINTS,
        get_tool_input_schema=handlers.tools.schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.accept,
        on_unsubscribe_resource=handlers.accept,
        on_subscriptions_listen=ListenHandler(handlers.lists.bus),
        on_completion=handlers.complete,
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, handlers.accept)
    boundary = RequestStateBoundary(RequestStateSecurity(keys=[STATE_KEY]), default_audience=server.name)
    server.middleware += [handlers.remember_session, boundary]
    return server


class OneEra:
    """Answers the requests of one era as a server would that has never heard of it."""

    def __init__(self, app: ASGIApp, era: str) -> None:
        self._app = app
        self._era = era

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_served(scope):
            await self._app(scope, receive, send)
            return
        status = 400 if scope["method"] == "POST" else METHOD_NOT_ALLOWED
        error: dict[str, Any] = {"code": types.INVALID_REQUEST, "message": "Unsupported protocol version"}
        if self._era == "modern":
            data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": "unknown"}
            error = {"code": types.UNSUPPORTED_PROTOCOL_VERSION, "message": error["message"], "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _is_served(self, scope: Scope) -> bool:
        revision = dict(scope["headers"]).get(b"mcp-protocol-version", b"").decode("latin-1")
        if self._era == "legacy":
            return revision not in MODERN_PROTOCOL_VERSIONS
        return revision != "" and revision not in HANDSHAKE_PROTOCOL_VERSIONS


def serve(app: ASGIApp, port: int) -> None:
    """Serve on 127.0.0.1 until a signal comes. The URL is printed once connections are accepted; 0 is any port."""
    listener = socket.create_server(("127.0.0.1", port))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    # httptools leaves trailing blanks on header values, which the suite's header checks notice: hence h11.
    config = uvicorn.Config(app, log_level="error", http="h11", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


def build_app(era: str) -> ASGIApp:
    """The fixture as an ASGI application; every application has its own lists, sessions and events."""
    app = build_server().streamable_http_app(event_store=RecentEvents(), retry_interval=RETRY_MILLISECONDS)
    return app if era == "both" else OneEra(app, era)


def main() -> None:
    """Parse the command line and serve."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one; the URL is printed")
    parser.add_argument("--era", choices=["both", "legacy", "modern"], default="both")
    arguments = parser.parse_args()
    serve(build_app(arguments.era), arguments.port)


if __name__ == "__main__":
    main()
