"""The far side of a connection, in the hands of the test."""

import asyncio
import json
from collections.abc import Awaitable
from typing import Any, TypeVar

from polyplex.errors import RpcError
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.connection import Asking, Connection

Json = dict[str, Any]
T = TypeVar("T")
DEADLINE_SECONDS = 10.0


class Wire:
    """A client transport that keeps what is sent, and a handler that keeps what is reported."""

    def __init__(self, *, cancels_by_closing: bool = False) -> None:
        self.sent: list[Json] = []
        self.headers: list[list[tuple[str, str]] | None] = []
        self.abandoned: list[bytes] = []
        self.closes = 0
        self.revision: str | None = None
        self.notices: list[tuple[bytes | None, str, Any]] = []
        self.losses: list[str] = []
        self.asked: list[tuple[bytes | None, str]] = []
        self.answer: asyncio.Future[Reply] | RpcError = RpcError(-32601, "nobody")
        self._closing = cancels_by_closing
        self._changed = asyncio.Event()
        self.connection = Connection("s", self, self)

    # -- the transport
    async def open(self, receiver: object) -> None:
        """Nothing to open."""

    def send(
        self, frame: bytes, exchange: Exchange | None = None, headers: list[tuple[str, str]] | None = None
    ) -> None:
        self.sent.append(json.loads(frame))
        self.headers.append(headers)
        self._changed.set()

    def abandon(self, exchange: Exchange) -> None:
        self.abandoned.append(exchange.id)

    def established(self, revision: str, *, stateful: bool) -> None:
        self.revision = revision

    @property
    def cancels_by_closing(self) -> bool:
        return self._closing

    async def close(self) -> None:
        self.closes += 1

    # -- the handler
    def ask(self, exchange: Exchange | None, method: str, params: bytes | None) -> Asking:
        self.asked.append((None if exchange is None else exchange.id, method))
        if isinstance(self.answer, RpcError):
            raise self.answer
        return self._answer

    async def _answer(self) -> Reply:
        assert not isinstance(self.answer, RpcError)
        return await self.answer

    def notified(self, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        given = None if params is None else json.loads(params)
        self.notices.append((None if exchange is None else exchange.id, method, given))

    def suspended(self, exchange: Exchange, retry_ms: int) -> None:
        self.notices.append((exchange.id, "suspended", retry_ms))

    def lost(self, reason: str, *, expired: bool = False) -> None:
        self.losses.append(reason)

    # -- the test's side
    def say(self, exchange: Exchange | None = None, /, **message: Any) -> None:
        """The server says something."""
        self.connection.received(json.dumps({"jsonrpc": "2.0", **message}).encode(), exchange)

    def raw(self, frame: bytes, exchange: Exchange | None = None) -> None:
        """The server says anything."""
        self.connection.received(frame, exchange)

    async def sends(self, method: str, count: int = 1) -> Json:
        """Wait until a method has been sent that often; the last of these messages."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while len(found := [message for message in self.sent if message.get("method") == method]) < count:
                self._changed.clear()
                await self._changed.wait()
        return found[-1]

    def responses(self) -> list[Json]:
        """What was sent in answer to requests of the server."""
        return [message for message in self.sent if "method" not in message]


async def within(awaitable: Awaitable[T]) -> T:
    """Await with a deadline."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        return await awaitable
