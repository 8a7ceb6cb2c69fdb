"""How a raw client's messages travel: lines of a process, Streamable HTTP, or HTTP+SSE."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol
from urllib.parse import urlsplit

from tests.matrix.peer.words import MODERN, R3, R4, since
from tests.process.http_stage import read_chunk, read_head

Receive = Callable[[Any], None]
LIMIT = 1 << 26
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"} | dict.fromkeys(
    ("tasks/get", "tasks/update", "tasks/cancel"), "taskId"
)


class Wire(Protocol):
    """What a client sends with; what comes goes to the function it was opened with."""

    async def send(self, message: Any, headers: dict[str, str] | None = None) -> None:
        """Send a message, or a batch."""
        ...

    async def cancel(self, identifier: Any) -> bool:
        """End a request by its transport's own means; False where it has none and a notification must do."""
        ...

    async def close(self) -> None:
        """End it all."""
        ...


class StdioWire:
    """Lines to and from a process."""

    def __init__(self, process: asyncio.subprocess.Process, receive: Receive) -> None:
        self.process = process
        self._receive = receive
        self._reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self._receive(json.loads(line))

    async def send(self, message: Any, headers: dict[str, str] | None = None) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        await self.process.stdin.drain()

    async def cancel(self, identifier: Any) -> bool:
        return False

    async def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(10):
                await self.process.wait()
        except TimeoutError:
            self.process.kill()
            raise
        await self._reader


class Events:
    """Server-sent events out of the bytes of a stream."""

    def __init__(self) -> None:
        self.last_id: str | None = None
        self._rest = b""

    def feed(self, data: bytes) -> list[tuple[str, str]]:
        """The events that are whole now, as (event, data)."""
        *blocks, self._rest = (self._rest + data).split(b"\n\n")
        return [event for block in blocks if (event := self._event(block.decode())) is not None]

    def _event(self, block: str) -> tuple[str, str] | None:
        event, data = "message", None
        for line in block.splitlines():
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                event = value
            elif name == "id":
                self.last_id = value
            elif name == "data":
                data = value if data is None else f"{data}\n{value}"
        return None if data is None else (event, data)


class HttpWire:
    """Streamable HTTP, as each revision has it: session, headers, a stream of its own for each request."""

    def __init__(self, url: str, revision: str, receive: Receive) -> None:
        parts = urlsplit(url)
        self.host, self.port, self.path = parts.hostname or "", parts.port or 80, parts.path
        self.revision = revision
        self.session: str | None = None
        self.responses: list[tuple[int, dict[str, str]]] = []
        self.last_ids: dict[str, str | None] = {}
        self.answered: set[str] = set()
        self._receive = receive
        self._open: dict[str, asyncio.StreamWriter] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def headers(self, message: Any) -> dict[str, str]:
        """What the revision wants beside a body."""
        lines = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        if self.session is not None:
            lines["Mcp-Session-Id"] = self.session
            if self.revision in since(R3):
                lines["MCP-Protocol-Version"] = self.revision
        if self.revision == MODERN:
            lines |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
            params = message.get("params", {})
            if message["method"] in NAMED:
                lines["Mcp-Name"] = params.get(NAMED[message["method"]], "")
            if "region" in params.get("arguments", {}):
                lines["Mcp-Param-Region"] = params["arguments"]["region"]
        return lines

    async def exchange(
        self, method: str, body: bytes | None, headers: dict[str, str], key: str = ""
    ) -> tuple[int, dict[str, str], Callable[[], Awaitable[bytes]]]:
        """Send a request; status, headers, and what reads the next part of the body (empty at its end)."""
        reader, writer = await asyncio.open_connection(self.host, self.port, limit=LIMIT)
        lines = {"Host": f"{self.host}:{self.port}"} | headers
        if body is not None:
            lines["Content-Length"] = str(len(body))
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"{method} {self.path} HTTP/1.1\r\n{head}\r\n".encode() + (body or b""))
        self._open[key] = writer
        response = await read_head(reader)
        self.responses.append((response.status, response.headers))
        if response.headers.get("transfer-encoding") == "chunked":
            return response.status, response.headers, lambda: read_chunk(reader)
        parts = [await reader.readexactly(int(response.headers.get("content-length", "0")))]
        writer.close()

        async def whole() -> bytes:
            return parts.pop() if parts else b""

        return response.status, response.headers, whole

    async def send(self, message: Any, headers: dict[str, str] | None = None) -> None:
        """Send; what comes back on the stream of this message is read by a task of its own."""
        key = json.dumps(message.get("id")) if isinstance(message, dict) and "method" in message else "other"
        body = json.dumps(message).encode()
        wait = not isinstance(message, dict) or "id" not in message or message.get("method") == "initialize"
        task = asyncio.create_task(self._run("POST", body, self.headers(message) | (headers or {}), key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if wait:
            await asyncio.shield(task)

    async def listen(self, last: str | None = None, key: str = "general") -> None:
        """GET a stream: the general one, or one that was lost."""
        headers = self.headers({"method": ""}) | ({} if last is None else {"Last-Event-ID": last})
        opened = asyncio.Event()
        task = asyncio.create_task(self._run("GET", None, headers, key, opened))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await opened.wait()

    async def _run(
        self, method: str, body: bytes | None, headers: dict[str, str], key: str, opened: asyncio.Event | None = None
    ) -> None:
        try:
            _, received, part = await self.exchange(method, body, headers, key)
        except (asyncio.IncompleteReadError, ConnectionError):
            return  # given up, or dropped
        writer = self._open.get(key)
        self.session = received.get("mcp-session-id", self.session)
        if opened is not None:
            opened.set()
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            if received.get("content-type") == "text/event-stream":
                await self._read(part, key)
            else:
                whole = b""
                while data := await part():
                    whole += data
                if whole:
                    self._receive(json.loads(whole))
        if writer is not None:
            writer.close()
            if self._open.get(key) is writer:
                del self._open[key]

    async def _read(self, part: Callable[[], Awaitable[bytes]], key: str) -> None:
        events = Events()
        while data := await part():
            for _, text in events.feed(data):
                if text:
                    message = json.loads(text)
                    if "method" not in message:
                        self.answered.add(key)
                    self._receive(message)
            self.last_ids[key] = events.last_id or self.last_ids.get(key)
        wanted = key in self._open and key not in (*self.answered, "general")
        if self.revision == R4 and wanted and self.last_ids.get(key):
            self._open.pop(key).close()  # the server wants to be polled (2025-11-25, "Streamable HTTP")
            await self.listen(self.last_ids[key], key)

    def drop(self, identifier: Any) -> str | None:
        """Lose the connection of a request; the id of the last event that came."""
        key = json.dumps(identifier)
        self._open.pop(key).transport.abort()
        return self.last_ids.get(key)

    async def cancel(self, identifier: Any) -> bool:
        if self.revision != MODERN:
            return False
        self._open.pop(json.dumps(identifier)).transport.abort()
        return True

    async def delete(self) -> int:
        """End the session; the status."""
        status, _, _ = await self.exchange("DELETE", None, self.headers({"method": ""}), "delete")
        return status

    async def close(self) -> None:
        if self.session is not None:
            await self.delete()
        writers = list(self._open.values())
        self._open.clear()
        for writer in writers:
            writer.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=10)


class SseWire:
    """HTTP+SSE of 2024-11-05: one stream for everything, POSTs to the address that its first event names."""

    def __init__(self, url: str, receive: Receive) -> None:
        self._http = HttpWire(url, "2024-11-05", receive)
        self._receive = receive
        self._endpoint = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Open the stream, and wait for its first event."""
        _, _, part = await self._http.exchange("GET", None, {"Accept": "text/event-stream"}, "stream")

        async def read() -> None:
            events = Events()
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                while data := await part():
                    for event, text in events.feed(data):
                        if event == "endpoint":
                            self._http.path = (
                                text if text.startswith("/") else urlsplit(text)._replace(scheme="", netloc="").geturl()
                            )
                            self._endpoint.set()
                        else:
                            self._receive(json.loads(text))

        self._reader = asyncio.create_task(read())
        await self._endpoint.wait()

    async def send(self, message: Any, headers: dict[str, str] | None = None) -> None:
        body = json.dumps(message).encode()
        status, _, _ = await self._http.exchange("POST", body, {"Content-Type": "application/json"}, "post")
        assert status in (200, 202), status

    async def cancel(self, identifier: Any) -> bool:
        return False

    async def close(self) -> None:
        for writer in self._http._open.values():
            writer.transport.abort()
        if self._reader is not None:
            await asyncio.wait([self._reader], timeout=10)
