"""What the tests of the HTTP client ask with: a sink that keeps what it hears, and a pool to a raw server."""

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from polyplex.transports.http_client import Connection, HttpFailure, HttpPool
from polyplex.transports.proxy import route_for
from tests.process.http_stage import DEADLINE_SECONDS, Peer, RawServer, until

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Taker:
    """A sink that keeps what it hears."""

    def __init__(self, *, streaming: bool = False) -> None:
        self.connection: Connection | None = None
        self.used: Connection | None = None
        self.streaming = streaming
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.pieces: list[bytes] = []
        self.failure: HttpFailure | None = None
        self.endings = 0
        self.ended = asyncio.Event()

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> bool:
        self.status, self.headers, self.used = status, headers, self.connection
        return self.streaming

    def on_data(self, data: bytes) -> None:
        assert not self.endings
        self.pieces.append(data)

    def _end(self) -> None:
        self.endings += 1
        self.ended.set()

    def on_end(self) -> None:
        self._end()

    def on_body(self, body: bytes | bytearray) -> None:
        self.pieces.append(bytes(body))
        self._end()

    def on_failure(self, error: HttpFailure) -> None:
        self.failure = error
        self._end()

    async def outcome(self) -> bytes | str:
        """The body, or the failure in words."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self.ended.wait()
        assert self.endings == 1
        return str(self.failure) if self.failure else b"".join(self.pieces)


@asynccontextmanager
async def pool_to(
    server: RawServer, context: ssl.SSLContext | None = None, *, host: str = "127.0.0.1", seconds: float = 5.0
) -> AsyncGenerator[HttpPool]:
    scheme = "http" if context is None else "https"
    pool = HttpPool(route_for(f"{scheme}://{host}:{server.port}/"), context, seconds)
    try:
        yield pool
    finally:
        pool.close()
        await until(lambda: not pool._all and not pool._opening)


def ask(pool: HttpPool, *, streaming: bool = False, body: bytes = b"") -> Taker:
    taker = Taker(streaming=streaming)
    pool.request(REQUEST, body, taker)
    return taker


async def echo(peer: Peer) -> None:
    """Answers request after request with the number of the connection."""
    while True:
        await peer.request()
        await peer.answer(b"%d" % peer.number)
