"""The HTTP endpoint in front of a stage's gateway, and a client of it that says exactly what a test wants."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from polyplex.downstream.http import HttpEndpoint, HttpOptions
from polyplex.protocol.revisions import LATEST_MODERN
from tests.interaction.stage import META, Json, Stage
from tests.process.http_stage import RawClient, raw_client, until
from tests.wire.watch import Line


class Answer(NamedTuple):
    """A response: its status, its last message, and the ones before."""

    status: int
    message: Json
    before: list[Json]

    @property
    def code(self) -> int | None:
        """The code of the error, where it is one."""
        return self.message.get("error", {}).get("code")


class Front:
    """One connection of a modern client."""

    def __init__(self, connection: RawClient, endpoint: HttpEndpoint) -> None:
        self.connection = connection
        self._endpoint = endpoint
        self._line = Line("to the HTTP client", "client", LATEST_MODERN)

    async def leave(self) -> None:
        """Close the connection, and wait until that has been noticed."""
        self.connection.close()
        await until(lambda: not self._endpoint._server._connections)

    async def post(self, message: Any, headers: list[tuple[str, str]]) -> Answer:
        """POST a message with these headers and no others of the protocol; headers may come twice."""
        self._line.came(message)
        body = json.dumps(message).encode()
        lines = [("Host", "localhost"), ("Accept", "application/json, text/event-stream"), *headers]
        head = "".join(f"{name}: {value}\r\n" for name, value in [*lines, ("Content-Length", str(len(body)))])
        await self.connection.send(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        response = await self.connection.response()
        text = response.body.decode()
        lines_of_data = [line.removeprefix("data:") for line in text.splitlines() if line.startswith("data:")]
        messages = [json.loads(line) for line in (lines_of_data or [text]) if line.strip()]
        for each in messages:
            self._line.sent(each)
        return Answer(response.status, messages[-1] if messages else {}, messages[:-1])


def modern(method: str, identifier: Any = 1, **params: Any) -> tuple[Json, list[tuple[str, str]]]:
    """A modern request with the headers that mirror it."""
    meta = {META + "protocolVersion": LATEST_MODERN, META + "clientCapabilities": {}}
    message: Json = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params | {"_meta": meta}}
    headers = [("MCP-Protocol-Version", LATEST_MODERN), ("Mcp-Method", method)]
    name = params.get("name") or params.get("uri")
    return message, [*headers, ("Mcp-Name", name)] if name else headers


@asynccontextmanager
async def http_front(on: Stage) -> AsyncGenerator[Front]:
    """A client connected over HTTP; the endpoint ends with it."""
    endpoint = HttpEndpoint(on.gateway, HttpOptions(port=0), on.gateway.health, lambda: b"")
    (_, port), *_ = await endpoint.start()
    try:
        async with raw_client(port) as connection:
            yield Front(connection, endpoint)
    finally:
        await endpoint.close()
        await until(lambda: not endpoint.busy)
