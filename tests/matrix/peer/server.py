"""The scripted peer as a server: `python -S server.py REVISION stdio|http|sse RECORD`. Standard library only.

Over http and sse it prints its URL once it accepts. RECORD is a file that gets a line for each violation.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

sys.path.insert(0, str(Path(__file__).parents[3]))

from tests.matrix.peer.session import Session
from tests.matrix.peer.words import LEGACY, META, MODERN, R1, R3, R4, Json, since

NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"} | dict.fromkeys(
    ("tasks/get", "tasks/update", "tasks/cancel"), "taskId"
)


def recorder(path: str) -> Callable[[Json], None]:
    """Writes lines that outlive the process."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def record(entry: Json) -> None:
        os.write(file, json.dumps(entry).encode() + b"\n")

    return record


async def serve_stdio(revision: str, record: Callable[[Json], None]) -> None:
    """Lines in, lines out, until stdin ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)

    def send(message: Json) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]

    session = Session(revision, send, record)
    while line := await reader.readline():
        session.receive(json.loads(line), send)


class Stream:
    """An event stream that a legacy client may take up again: all its events, and where they go now."""

    def __init__(self, name: str, numbered: bool) -> None:
        self.name = name
        self.numbered = numbered
        self.events: list[bytes] = []
        self.writer: asyncio.StreamWriter | None = None
        self.over = asyncio.Event()

    def send(self, message: Json) -> None:
        """One event; the response is the last."""
        number = f"id: {self.name}-{len(self.events) + 1}\n" if self.numbered else ""
        self.events.append(f"{number}data: {json.dumps(message)}\n\n".encode())
        if self.writer is not None and not self.writer.is_closing():
            self.writer.write(self.events[-1])
        if "method" not in message:
            self.over.set()

    def cut(self) -> None:
        """Close the connection, not the stream."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class Http:
    """Streamable HTTP of one revision, or HTTP+SSE."""

    def __init__(self, revision: str, record: Callable[[Json], None], *, sse: bool) -> None:
        self.revision = revision
        self.record = record
        self.sse = sse
        self.sessions: dict[str, Session] = {}
        self.general: dict[str, Stream] = {}
        self.streams: dict[str, Stream] = {}
        self.modern = Session(MODERN, lambda message: None, record)
        self.tasks: set[asyncio.Task[None]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests one after another."""
        try:
            while await self._exchange(reader, writer):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ")
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        message: Any = json.loads(body) if body else None
        if self.sse:
            return await self._sse(method, target, message, reader, writer)
        if self.revision == MODERN:
            return await self._modern(method, headers, message, reader, writer)
        return await self._legacy(method, headers, message, reader, writer)

    def _respond(self, writer: asyncio.StreamWriter, status: str, body: Json | None = None, extra: str = "") -> bool:
        data = b"" if body is None else json.dumps(body).encode()
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n{extra}\r\n"
        writer.write(head.encode() + data)
        return True

    def _events(self, writer: asyncio.StreamWriter, extra: str = "") -> None:
        head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{extra}connection: close\r\n\r\n"
        writer.write(head.encode())

    # -- modern
    async def _modern(
        self, method: str, headers: dict[str, str], message: Any, reader: Any, writer: asyncio.StreamWriter
    ) -> bool:
        if method != "POST":
            return self._respond(writer, "405 Method Not Allowed")
        if "mcp-session-id" in headers:
            self.record({"violation": "Mcp-Session-Id sent to a modern server"})
        if "method" not in message:
            self.record({"violation": f"a response was posted to a modern server: {message}"})
        if "id" not in message or "method" not in message:
            return self._respond(writer, "202 Accepted")
        wrong = None if message["method"] == "initialize" else _wrong_header(headers, message)
        if wrong is not None:
            self.record({"violation": wrong})
            error = {"code": -32020, "message": wrong}
            return self._respond(writer, "400 Bad Request", {"jsonrpc": "2.0", "id": message["id"], "error": error})
        if message["method"] == "initialize":
            replies: list[Json] = []
            self.modern.receive(message, replies.append)
            return self._respond(writer, "400 Bad Request", replies[0])
        self._events(writer)
        stream = Stream("", numbered=False)
        stream.writer = writer
        self.modern.receive(message, stream.send)
        if await self._left(reader, stream):
            stream.writer = None
            self.modern.cancel(message["id"], stream.send)
        return False

    async def _left(self, reader: asyncio.StreamReader, stream: Stream) -> bool:
        """True where the client left before the end of the stream."""
        loop = asyncio.get_running_loop()
        over, gone = loop.create_task(stream.over.wait()), loop.create_task(reader.read(1))
        await asyncio.wait((over, gone), return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        gone.cancel()
        return not stream.over.is_set()

    # -- legacy
    async def _legacy(
        self, method: str, headers: dict[str, str], message: Any, reader: Any, writer: asyncio.StreamWriter
    ) -> bool:
        known = headers.get("mcp-session-id")
        if known is None and isinstance(message, dict) and message.get("method") == "initialize":
            return self._initialize(message, writer)
        session = self.sessions.get(known or "")
        if session is None:
            return self._respond(writer, "400 Bad Request" if known is None else "404 Not Found")
        assert known is not None
        wanted = self.revision if self.revision in since(R3) else None
        if wanted is not None and headers.get("mcp-protocol-version") != wanted:
            self.record({"violation": f"MCP-Protocol-Version is {headers.get('mcp-protocol-version')}"})
        if method == "DELETE":
            del self.sessions[known]
            return self._respond(writer, "200 OK")
        if method == "GET":
            return await self._get(known, headers.get("last-event-id"), reader, writer)
        if "id" not in message or "method" not in message:
            session.receive(message, self.general[known].send)
            return self._respond(writer, "202 Accepted")
        await self._post(session, message, reader, writer)
        return False

    def _initialize(self, message: Json, writer: asyncio.StreamWriter) -> bool:
        name = f"session-{len(self.general)}"
        general = self.general[name] = Stream(f"g{len(self.general)}", numbered=False)
        session = self.sessions[name] = Session(self.revision, general.send, self.record)
        replies: list[Json] = []
        session.receive(message, replies.append)
        return self._respond(writer, "200 OK", replies[0], f"mcp-session-id: {name}\r\n")

    async def _get(self, known: str, last: str | None, reader: Any, writer: asyncio.StreamWriter) -> bool:
        self._events(writer)
        stream, start = self.general[known], 0
        if last is not None:
            name, _, number = last.rpartition("-")
            stream, start = self.streams[name], int(number)
        for event in stream.events[start:]:
            writer.write(event)
        stream.writer = writer
        if stream.over.is_set():
            return False
        await self._left(reader, stream)
        return False

    async def _post(self, session: Session, message: Json, reader: Any, writer: asyncio.StreamWriter) -> None:
        name = f"s{len(self.streams)}"
        stream = self.streams[name] = Stream(name, numbered=self.revision != R1)
        stream.writer = writer
        self._events(writer)
        if self.revision == R4:
            stream.events.append(f"id: {name}-1\ndata:\nretry: 10\n\n".encode())
            writer.write(stream.events[-1])
        arguments = message.get("params", {}).get("arguments", {})
        session.receive(message, stream.send)
        if arguments.get("cut"):  # as a proxy on the way may do
            await writer.drain()
            stream.cut()
            return
        await self._left(reader, stream)

    # -- HTTP+SSE
    async def _sse(self, method: str, target: str, message: Any, reader: Any, writer: asyncio.StreamWriter) -> bool:
        if method == "GET" and urlsplit(target).path == "/sse":
            self._events(writer)
            name = f"session-{len(self.general)}"
            stream = self.general[name] = Stream(name, numbered=False)
            stream.writer = writer
            self.sessions[name] = Session(self.revision, stream.send, self.record)
            writer.write(f"event: endpoint\ndata: /messages?session={name}\n\n".encode())
            await reader.read()
            return False
        if method != "POST" or urlsplit(target).path != "/messages":
            return self._respond(writer, "405 Method Not Allowed")
        name = parse_qs(urlsplit(target).query)["session"][0]
        self._respond(writer, "202 Accepted")
        self.sessions[name].receive(message, self.general[name].send)
        return True


def _wrong_header(headers: dict[str, str], message: Json) -> str | None:
    """What a header says other than the body."""
    method, params = message["method"], message.get("params", {})
    wanted = {"mcp-protocol-version": params.get("_meta", {}).get(META + "protocolVersion"), "mcp-method": method}
    if method in NAMED:
        wanted["mcp-name"] = params.get(NAMED[method])
    region = params.get("arguments", {}).get("region")
    if params.get("name") == "regional" and region is not None:
        wanted["mcp-param-region"] = region
    for name, value in wanted.items():
        if headers.get(name) != value:
            return f"{name} is {headers.get(name)!r}, the body says {value!r}"
    return None


async def main() -> None:
    """Serve."""
    revision, transport, record = sys.argv[1], sys.argv[2], recorder(sys.argv[3])
    if transport == "stdio":
        await serve_stdio(revision, record)
        return
    http = Http(revision, record, sse=transport == "sse")
    server = await asyncio.start_server(http.connected, "127.0.0.1", 0, limit=1 << 26)
    path = "sse" if transport == "sse" else "mcp"
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/{path}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    assert sys.argv[1] in (*LEGACY, MODERN)
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        sys.exit(0)
