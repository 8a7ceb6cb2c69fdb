"""`script.Script` behind Streamable HTTP, in the test's own process; each request is answered by its own stream."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tests.interaction.script import MODERN, Json
from tests.interaction.script_tasks import TaskScript
from tests.wire.schema import LATEST_LEGACY
from tests.wire.watch import Line

TEST_SERVER = "scripted HTTP server"
REASONS = {200: "OK", 202: "Accepted", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class ScriptedHttp:
    """One address; `sessions` are the ids it knows, `requests` what came as (HTTP method, headers, message)."""

    def __init__(self, settings: Json) -> None:
        loop = asyncio.get_running_loop()
        self.settings = settings
        self.script = TaskScript(settings, lambda seconds, work: loop.call_later(seconds, work) and None, self._general)
        self.requests: list[tuple[str, dict[str, str], Any]] = []
        self.sessions: set[str] = set()
        self.closed: asyncio.Queue[Any] = asyncio.Queue()
        self.url = ""
        self.port = 0
        self._line = Line("to the HTTP server", "server", settings.get("revision"))
        self._started = 0
        self._stream: asyncio.StreamWriter | None = None
        self._server: asyncio.Server | None = None
        self._handlers: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    def _general(self, message: Json) -> None:
        self._line.came(message)
        if self._stream is not None and not self._stream.is_closing():
            self._stream.write(event(message))

    async def start(self) -> None:
        """Listen, on the port of before where there was one."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"

    async def stop(self) -> None:
        """Close the address and every connection."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.gather(*self._handlers)

    def forget(self) -> None:
        """Forget all sessions: from now on they get a 404."""
        self.sessions.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name(TEST_SERVER)
        self._handlers.add(task)
        self._writers.add(writer)
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._handlers.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method = head[0].split(" ")[0]
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        message = json.loads(body) if body else None
        self.requests.append((method, headers, message))
        if message is not None:
            self._check(headers, message)
        known = headers.get("mcp-session-id")
        if known is not None and known not in self.sessions:
            return self._status(writer, 404)
        if method == "DELETE":
            self.sessions.discard(known or "")
            return self._status(writer, 200)
        if method == "GET":
            if self.script.era == "modern" or known is None:
                return self._status(writer, 405)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n")
            self._stream = writer
            await reader.read()
            return False
        if not isinstance(message, dict) or "id" not in message or "method" not in message:
            self.script.receive(message or {}, self._general)
            return self._status(writer, 202)
        await self._stream_answer(message, reader, writer)
        return False

    def _check(self, headers: dict[str, str], message: Any) -> None:
        modern = headers.get("mcp-protocol-version") == MODERN
        self._line.sent(message, MODERN if modern else self.settings.get("revision", LATEST_LEGACY))

    def _status(self, writer: asyncio.StreamWriter, status: int) -> bool:
        writer.write(f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-length: 0\r\n\r\n".encode())
        return True

    async def _stream_answer(self, message: Json, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer on an event stream that ends with the response; `closed` tells of clients that left before."""
        extra = ""
        if message["method"] == "initialize":
            self._started += 1
            session = f"session-{self._started}"
            self.sessions.add(session)
            extra = f"mcp-session-id: {session}\r\n"
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{extra}connection: close\r\n\r\n".encode())
        answered = asyncio.Event()

        def send(reply: Json) -> None:
            self._line.came(reply)
            if not answered.is_set() and not writer.transport.is_closing():
                writer.write(event(reply))
            if "method" not in reply:
                answered.set()

        self.script.receive(message, send)
        loop = asyncio.get_running_loop()
        wait = loop.create_task(answered.wait(), name=TEST_SERVER)
        gone = loop.create_task(reader.read(1), name=TEST_SERVER)
        try:
            await asyncio.wait((wait, gone), return_when=asyncio.FIRST_COMPLETED)
            if not answered.is_set():
                self.closed.put_nowait(message["id"])
                answered.set()
        finally:
            wait.cancel()
            gone.cancel()


def event(message: Json) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(message).encode() + b"\n\n"


@asynccontextmanager
async def scripted_http(**settings: Any) -> AsyncGenerator[ScriptedHttp]:
    """A server for the time of a test."""
    server = ScriptedHttp(settings)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
