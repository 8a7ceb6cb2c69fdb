"""The endpoints with a gateway that the test scripts."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from polyplex.downstream.http import HttpEndpoint, HttpOptions
from polyplex.downstream.session import Call, Session
from polyplex.errors import RemoteProtocolError
from polyplex.protocol.revisions import LATEST_MODERN
from polyplex.transports.exchange import Reply
from tests.process.http_stage import RawClient, Received, raw_client, until

PREFIX = "io.modelcontextprotocol/"
NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d}}'


class ScriptedGateway:
    """Answers `initialize`, echoes tools/call, and lets a test answer all else by `on`."""

    def __init__(self) -> None:
        self.on: dict[str, Callable[[Call], Awaitable[Reply]]] = {}
        self.calls: list[Call] = []
        self.cancelled: list[Call] = []
        self.notices: list[tuple[Session, str, bytes | None]] = []
        self.ended: list[Session] = []
        self.release = asyncio.Event()

    async def handle(self, call: Call) -> Reply:
        self.calls.append(call)
        try:
            answer = self.on.get(call.method)
            if answer is not None:
                return await answer(call)
            if call.method == "initialize":
                params = json.loads(call.params or b"{}")
                call.session.revision = params["protocolVersion"]
                return Reply(b'{"protocolVersion":"%b"}' % call.session.revision.encode())
            return Reply(call.params or b"{}")
        except asyncio.CancelledError:
            self.cancelled.append(call)
            raise

    async def wait(self, call: Call) -> Reply:
        """An answer that takes until `release`."""
        await self.release.wait()
        return Reply(b'{"late":true}')

    def notified(self, session: Session, method: str, params: bytes | None) -> None:
        if method == "notifications/unusable":
            raise RemoteProtocolError("unusable", code=-32602)
        self.notices.append((session, method, params))

    def closed(self, session: Session) -> None:
        self.ended.append(session)


class Stage:
    """The HTTP endpoint, its gateway, and ways to talk to it."""

    def __init__(self, endpoint: HttpEndpoint, gateway: ScriptedGateway, port: int) -> None:
        self.endpoint, self.gateway, self.port = endpoint, gateway, port

    @asynccontextmanager
    async def client(self, session: str | None = None, revision: str | None = None) -> AsyncGenerator["Client"]:
        """A connection of its own, which carries the session where one is given."""
        async with raw_client(self.port) as connection:
            yield Client(connection, session, revision)

    async def session(self, revision: str) -> str:
        """A new session of a legacy client."""
        async with self.client() as client:
            response = await client.post(initialize(revision))
            assert response.status == 200
            return response.headers["mcp-session-id"]


class Client:
    """One HTTP connection of an MCP client."""

    def __init__(self, connection: RawClient, session: str | None, revision: str | None) -> None:
        self.connection, self.session, self.revision = connection, session, revision

    async def send(
        self, body: object = None, headers: dict[str, str] | None = None, method: str = "POST", path: str = "/mcp"
    ) -> None:
        lines = {"Accept": "application/json, text/event-stream"}
        if self.session is not None:
            lines["Mcp-Session-Id"] = self.session
        if self.revision is not None:
            lines["MCP-Protocol-Version"] = self.revision
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        await self.connection.request(method, path, data, lines | (headers or {}))

    async def post(self, body: object, headers: dict[str, str] | None = None, path: str = "/mcp") -> Received:
        """A POST whose response is whole."""
        await self.send(body, headers, path=path)
        return await self.connection.response()

    async def open(self, last: str | None = None, path: str = "/mcp") -> Received:
        """A GET, and the head of its response."""
        await self.open_only(last, path)
        return await self.connection.head()

    async def open_only(self, last: str | None = None, path: str = "/mcp") -> None:
        """A GET whose response is not read yet."""
        headers = {"Accept": "text/event-stream"} | ({} if last is None else {"Last-Event-ID": last})
        await self.send(None, headers, "GET", path)

    async def event(self) -> dict[str, Any]:
        """The next event of a stream; comments are passed over. Empty at its end."""
        while True:
            chunk = await self.connection.chunk()
            if not chunk:
                return {}
            if chunk.startswith(b":"):
                continue
            fields: dict[str, Any] = {}
            for line in chunk.decode().splitlines():
                name, _, value = line.partition(":")
                fields[name] = value.strip()
            fields.pop("", None)
            if fields.get("data", "").startswith("{"):
                fields["frame"] = json.loads(fields["data"])
            return fields

    async def events(self) -> list[dict[str, Any]]:
        """All events up to the end of the stream."""
        found: list[dict[str, Any]] = []
        while event := await self.event():
            found.append(event)
        return found


def request(method: str, identifier: object = 1, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}


def notification(method: str, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialize(revision: str) -> dict[str, Any]:
    client = {"name": "test", "version": "1"}
    return request("initialize", 0, protocolVersion=revision, capabilities={}, clientInfo=client)


def modern(method: str, identifier: object = 1, **params: object) -> tuple[dict[str, Any], dict[str, str]]:
    """A modern request and its headers."""
    meta = {PREFIX + "protocolVersion": LATEST_MODERN, PREFIX + "clientCapabilities": {}}
    headers = {"MCP-Protocol-Version": LATEST_MODERN, "Mcp-Method": method}
    if "name" in params:
        headers["Mcp-Name"] = str(params["name"])
    return request(method, identifier, **params, _meta=meta), headers


@asynccontextmanager
async def http_endpoint(**options: Any) -> AsyncGenerator[Stage]:
    """The endpoint on a free port of loopback; nothing of it is left at the end."""
    gateway = ScriptedGateway()
    endpoint = HttpEndpoint(
        gateway, HttpOptions(port=0, **options), lambda: (True, {"ready": True}), lambda: b"metric 1\n"
    )
    (_, port), *_ = await endpoint.start()
    try:
        yield Stage(endpoint, gateway, port)
    finally:
        await endpoint.close()
        await until(lambda: not endpoint._server._connections)
        await until(lambda: not endpoint.busy)
