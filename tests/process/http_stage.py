"""What the tests of HTTP talk to: a raw server and a raw client that say byte for byte what a test wants."""

import asyncio
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext, SSLError

DEADLINE_SECONDS = 10.0


@dataclass
class Received:
    """A request or response as it came; header names in lower case, of several equal ones the last."""

    first: str
    headers: dict[str, str]
    body: bytes = b""

    @property
    def method(self) -> str:
        return self.first.split()[0]

    @property
    def path(self) -> str:
        return self.first.split()[1]

    @property
    def status(self) -> int:
        return int(self.first.split()[1])


async def read_head(reader: asyncio.StreamReader) -> Received:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = [line.partition(":") for line in head[1:] if line]
    return Received(head[0], {name.lower(): value.strip() for name, _, value in fields})


async def read_chunk(reader: asyncio.StreamReader) -> bytes:
    """One chunk of a chunked body; empty for the last."""
    size = int(await reader.readuntil(b"\r\n"), 16)
    data = await reader.readexactly(size)
    await reader.readexactly(2)
    return data


async def read_message(reader: asyncio.StreamReader) -> Received:
    """A whole message: sized, chunked, or (neither) without a body."""
    message = await read_head(reader)
    if message.headers.get("transfer-encoding") == "chunked":
        while chunk := await read_chunk(reader):
            message.body += chunk
    else:
        message.body = await reader.readexactly(int(message.headers.get("content-length", "0")))
    return message


class Peer:
    """One connection to the raw server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader, self.writer, self.number = reader, writer, number

    async def request(self) -> Received:
        """The next request."""
        return await read_message(self.reader)

    async def say(self, *parts: bytes) -> None:
        """Write the parts one by one, each in a packet of its own as far as that can be had."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(
        self, body: bytes = b"", status: str = "200 OK", kind: str = "application/json", extra: str = ""
    ) -> None:
        """A sized response."""
        head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        await self.say(head.encode() + body)

    async def events(self, *events: bytes, extra: str = "", end: bool = True) -> None:
        """A chunked event stream."""
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n{extra}\r\n"
        await self.say(head.encode(), *(b"%x\r\n%b\r\n" % (len(event), event) for event in events))
        if end:
            await self.say(b"0\r\n\r\n")

    async def event(self, event: bytes) -> None:
        """One more chunk of such a stream."""
        await self.say(b"%x\r\n%b\r\n" % (len(event), event))

    async def gone(self) -> None:
        """Wait until the other side has closed."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass

    def close(self) -> None:
        self.writer.close()

    def abort(self) -> None:
        with suppress(AttributeError):  # of a TLS connection that is gone, in Python 3.11.0 to 3.11.4
            self.writer.transport.abort()


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class RawServer:
    """Runs a script for each connection; `failures` are those of scripts, and fail the test at the end."""

    script: Script
    host: str = "127.0.0.1"
    port: int = 0
    peers: list[Peer] = field(default_factory=list[Peer])
    failures: list[BaseException] = field(default_factory=list[BaseException])
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])
    connected: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/mcp"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, len(self.peers))
        self.peers.append(peer)
        self.connected.set()
        task = asyncio.create_task(self._run(peer))
        self.tasks.add(task)

    async def _run(self, peer: Peer) -> None:
        try:
            await self.script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has left
        except Exception as error:  # noqa: BLE001 - it fails the test, at its end
            self.failures.append(error)
        finally:
            peer.writer.close()


@asynccontextmanager
async def raw_server(script: Script, tls: SSLContext | None = None) -> AsyncGenerator[RawServer]:
    """A server on loopback that does what `script` says for each connection."""
    server = RawServer(script)
    listener = await asyncio.start_server(server._accept, "127.0.0.1", 0, ssl=tls, limit=1 << 20)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()
        for task in server.tasks:
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        for peer in server.peers:
            peer.abort()
            with suppress(ConnectionError, SSLError):
                await peer.writer.wait_closed()
        await until(lambda: not any("_accept_connection2" in repr(task) for task in asyncio.all_tasks()))
        assert not server.failures, server.failures


class RawClient:
    """One connection to an HTTP server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def send(self, *parts: bytes) -> None:
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def request(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """Send a request; the headers say localhost and JSON unless they say otherwise."""
        lines = {"Host": "localhost", "Content-Type": "application/json"} | (headers or {})
        if body is not None:
            lines["Content-Length"] = str(len(body))
        text = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        await self.send(f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode("latin-1") + (body or b""))

    async def response(self) -> Received:
        """The next response, whole."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await read_message(self.reader)

    async def head(self) -> Received:
        """The head of the next response."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await read_head(self.reader)

    async def chunk(self) -> bytes:
        """The next chunk of a chunked body; empty for the last."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            return await read_chunk(self.reader)

    async def rest(self) -> bytes:
        """All that comes until the server closes."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    def close(self) -> None:
        self.writer.close()

    def reset(self) -> None:
        """Break the connection so that the server notices at once; after `close` it may still be read from."""
        self.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@asynccontextmanager
async def raw_client(port: int) -> AsyncGenerator[RawClient]:
    """A connection to a port on loopback."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
    client = RawClient(reader, writer)
    try:
        yield client
    finally:
        writer.close()


async def until(condition: Callable[[], object]) -> None:
    """Let the event loop run until something holds that nobody tells of."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.001)
