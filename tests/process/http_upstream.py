"""A Streamable HTTP client against a raw server, and what its receiver hears."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from polyplex.errors import UpstreamError
from polyplex.protocol import jsonrpc
from polyplex.transports.body import BodyStream
from polyplex.transports.exchange import Exchange, Reply
from polyplex.transports.streamable_http import HttpEndpoint, StreamableHttpClient
from tests.process.http_stage import DEADLINE_SECONDS, RawServer, Script, raw_server, until

LEGACY = "2025-11-25"
MODERN = "2026-07-28"


class Listener:
    """A receiver that answers exchanges as an upstream connection does, and keeps the rest."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.exchanges: dict[bytes, Exchange] = {}
        self.lost: list[Exchange | None] = []
        self.polled: list[int] = []
        self.ended: list[str] = []
        self.changed = asyncio.Event()

    def received(self, frame: bytes | bytearray, exchange: Exchange | None) -> None:
        self.frames.append(bytes(frame))
        self.changed.set()
        message = jsonrpc.decode(bytes(frame))
        if isinstance(message.method, str):
            return
        asked = self.exchanges.get(bytes(message.id)) if message.id else None
        if asked is not None:
            error = bytes(message.error) if message.error else None
            asked.resolve(Reply(None if error else bytes(message.result), error))  # pyright: ignore[reportArgumentType]

    def streamed(self, stream: BodyStream, exchange: Exchange) -> None:
        exchange.resolve(Reply(stream=stream))

    def failed(self, exchange: Exchange, error: UpstreamError) -> None:
        assert not exchange.done(), "answered twice"
        exchange.fail(error)

    def session_lost(self, exchange: Exchange | None) -> None:
        self.lost.append(exchange)
        if exchange is not None:
            exchange.fail(LookupError("session lost"))

    def suspended(self, exchange: Exchange, retry_ms: int) -> None:
        self.polled.append(retry_ms)

    def closed(self, reason: str) -> None:
        self.ended.append(reason)
        self.changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for frames until `condition` holds."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


class Upstream:
    """The client and its listener."""

    def __init__(self, client: StreamableHttpClient, listener: Listener, server: RawServer) -> None:
        self.client, self.listener, self.server = client, listener, server
        self._count = 0

    def start(
        self,
        method: str = "tools/call",
        *,
        streamable: bool = False,
        headers: list[tuple[str, str]] | None = None,
        params: bytes | None = None,
    ) -> Exchange:
        """Send a request."""
        self._count += 1
        exchange = Exchange(asyncio.get_running_loop(), b"%d" % self._count, method, None)
        exchange.streamable = streamable
        self.listener.exchanges[exchange.id] = exchange
        self.client.send(jsonrpc.request(exchange.id, method, params), exchange, headers)
        return exchange

    async def call(self, method: str = "tools/call", **options: object) -> Reply:
        """Send a request and await its reply."""
        return await settled(self.start(method, **options))  # pyright: ignore[reportArgumentType]

    async def failure(self, method: str = "tools/call") -> str:
        """The kind and the message of the failure that a request ends in."""
        try:
            reply = await self.call(method)
        except Exception as error:  # noqa: BLE001 - what it is, is what is asked for
            return f"{type(error).__name__}: {error}"
        raise AssertionError(f"no failure but {reply.result or reply.error}")


async def settled(exchange: Exchange) -> Reply:
    """The reply of an exchange, within the deadline; no post of it is kept afterwards."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await exchange


@asynccontextmanager
async def upstream(
    script: Script, revision: str | None = None, headers: dict[str, str] | None = None, url: str = ""
) -> AsyncGenerator[Upstream]:
    """A client of a raw server that does what `script` says for each connection."""
    async with raw_server(script) as server:
        client = StreamableHttpClient(HttpEndpoint("docs", url or server.url, headers or {}, connect_timeout=5.0))
        listener = Listener()
        await client.open(listener)
        if revision is not None:
            client.established(revision, stateful=revision == LEGACY)
        try:
            yield Upstream(client, listener, server)
        finally:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await client.close()
            await until(lambda: not client._pool._opening and not client._pool._all)
            await until(lambda: not client._posts)  # none is kept that nobody waits for


def result(identifier: int = 1, text: str = '{"ok":true}') -> bytes:
    """A response frame."""
    return f'{{"jsonrpc":"2.0","id":{identifier},"result":{text}}}'.encode()


def event(frame: bytes, identifier: str | None = None) -> bytes:
    """An event."""
    return (b"" if identifier is None else b"id: %b\n" % identifier.encode()) + b"data: %b\n\n" % frame
