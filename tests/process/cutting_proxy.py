"""A TCP proxy before an MCP server that breaks connections in the middle of event streams."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

from tests.process.http_stage import DEADLINE_SECONDS, read_chunk

# Within an event; after one; or after one and as if the server had ended the stream.
Cut = Literal["half", "whole", "ended"]
MARK = b'"notifications/progress"'


class CuttingProxy:
    """Each progress notification that comes by meets the next of `cuts`."""

    def __init__(self, port: int, cuts: list[Cut]) -> None:
        self._port = port
        self._cuts = cuts
        self.port = 0
        self.losses = 0
        self._lost = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()

    async def lost(self, number: int) -> None:
        """Wait until that many connections have been lost."""
        async with asyncio.timeout(DEADLINE_SECONDS), self._lost:
            await self._lost.wait_for(lambda: self.losses >= number)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(asyncio.create_task(self._carry(reader, writer)))

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        requests = asyncio.create_task(_copy(reader, far_writer))
        try:
            while await self._response(far_reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            requests.cancel()
            far_writer.transport.abort()
            writer.close()

    async def _response(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Pass one response on; False where the connection is to end."""
        head = await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        if b"chunked" not in head:
            length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
            writer.write(await reader.readexactly(int(length or b"0")))
            return True
        while chunk := await read_chunk(reader):
            whole = b"%x\r\n%b\r\n" % (len(chunk), chunk)
            if MARK in chunk and self._cuts:
                await self._cut(self._cuts.pop(0), whole, writer)
                return False
            writer.write(whole)
        writer.write(b"0\r\n\r\n")
        return True

    async def _cut(self, cut: Cut, event: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(event[: len(event) // 2] if cut == "half" else event)
        if cut == "ended":
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        async with self._lost:
            self.losses += 1
            self._lost.notify_all()

    async def stop(self) -> None:
        """End every connection."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)


@asynccontextmanager
async def cutting_proxy(port: int, cuts: list[Cut]) -> AsyncGenerator[CuttingProxy]:
    """A proxy before a port of loopback."""
    proxy = CuttingProxy(port, cuts)
    server = await asyncio.start_server(proxy._accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
