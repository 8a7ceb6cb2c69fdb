"""Our own `subscriptions/listen` with a modern server: one stream for list changes and resources (2026-07-28).

What a stream is about cannot be changed, and a broken one is not taken up again. So when other resources are wanted, a
new stream is opened beside the old one, which ends a moment later; after a gap everything counts as changed.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError, UpstreamLost
from polyplex.protocol.jsonrpc import INTERNAL_ERROR, decode_error, decode_fields
from polyplex.transports.exchange import Exchange
from polyplex.upstreams.connection import Connection

log = logging.getLogger("polyplex.upstreams")
FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 30.0
ACKNOWLEDGE_SECONDS: Final = 30.0
OVERLAP_SECONDS: Final = 0.25
_DECLARED: Final = b'"listChanged":true'
_HEADERS: Final = [("Mcp-Method", "subscriptions/listen")]
Params = Callable[[dict[str, object]], bytes]


def wanted_changes(connection: Connection) -> dict[str, object]:
    """The filter for all kinds of list change that the server declares."""
    capabilities = {} if connection.peer is None else connection.peer.capabilities
    return {
        f"{name}ListChanged": True
        for name in ("tools", "prompts", "resources")
        if _DECLARED in bytes(capabilities.get(name, Raw(b""))).replace(b" ", b"")
    }


class _Honoured(msgspec.Struct):
    resourceSubscriptions: list[str] = []


class _Stream:
    """One listen request. `changed` is set when it is acknowledged, and when it ends."""

    __slots__ = ("changed", "exchange", "heard", "honoured")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.honoured: frozenset[str] | None = None
        self.heard: Counter[str] = Counter()
        self.changed = asyncio.Event()
        if exchange.done():
            self.changed.set()
        else:
            exchange.on_done = lambda _: self.changed.set()


class Listening:
    """All that one session listens to. `ready` is set once the server has acknowledged it, or there is nothing."""

    __slots__ = ("_asked", "_changed", "_streams", "_timers", "_uris", "_waiters", "ready")

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self._uris: frozenset[str] = frozenset()
        self._changed = asyncio.Event()
        self._streams: list[_Stream] = []
        self._waiters: list[asyncio.Future[frozenset[str]]] = []
        self._asked: list[asyncio.Future[frozenset[str]]] = []
        self._timers: set[asyncio.TimerHandle] = set()

    # -- what is wanted
    @property
    def uris(self) -> frozenset[str]:
        """The resources that are watched."""
        return self._uris

    async def watch(self, uris: Iterable[str]) -> frozenset[str]:
        """Listen to these resources from now on; gives those that the server honours.

        Raises `RpcError` or `UpstreamError` where the server takes no such stream.
        """
        wanted, current = frozenset(uris), self._streams[-1] if self._streams else None
        if wanted == self._uris and current is not None and current.honoured is not None:
            return current.honoured & wanted
        waiter: asyncio.Future[frozenset[str]] = asyncio.get_running_loop().create_future()
        self._uris = wanted
        self._waiters.append(waiter)
        self._changed.set()
        return await waiter

    def _tell(self, outcome: frozenset[str] | Exception) -> None:
        """To those who asked before the stream was opened; who asked later waits for the next one."""
        waiters, self._asked = self._asked, []
        for waiter in waiters:
            if waiter.done():
                continue
            if isinstance(outcome, Exception):
                waiter.set_exception(outcome)
            else:
                waiter.set_result(outcome)

    # -- what comes
    def owns(self, exchange: Exchange) -> bool:
        """True for the exchange of one of the streams."""
        return any(stream.exchange is exchange for stream in self._streams)

    def acknowledged(self, exchange: Exchange | None, params: bytes | None) -> bool:
        """The server acknowledges a stream; True where it is one of these."""
        stream = next((each for each in self._streams if each.exchange is exchange), None)
        if stream is None:
            return False
        try:
            raw = decode_fields(params or b"{}").get("notifications", Raw(b"{}"))
            stream.honoured = frozenset(msgspec.json.decode(raw, type=_Honoured).resourceSubscriptions)
        except (RemoteProtocolError, msgspec.DecodeError):
            stream.honoured = frozenset()
        for older in self._streams:
            stream.heard |= older.heard  # level with those who have heard most, so that only what comes now is news
        stream.changed.set()
        return True

    def is_news(self, exchange: Exchange | None, uri: str) -> bool:
        """False for what the other stream has told already: while two are open, both tell of each change."""
        if len(self._streams) < 2:
            return True
        stream = next((each for each in self._streams if each.exchange is exchange), None)
        if stream is None:
            return True
        stream.heard[uri] += 1
        return all(stream.heard[uri] > other.heard[uri] for other in self._streams if other is not stream)

    # -- the streams
    async def keep(self, connection: Connection, params: Params, missed: Callable[[], None]) -> None:
        """Keep a stream open for as long as the connection is; `missed` is called after each gap."""
        delay = FIRST_DELAY
        try:
            while connection.open:
                self._changed.clear()
                self._asked, self._waiters = [*self._asked, *self._waiters], []
                wanted = wanted_changes(connection)
                if self._uris:
                    wanted["resourceSubscriptions"] = sorted(self._uris)
                if not wanted:
                    self._nothing_wanted(connection)
                    await self._changed.wait()
                    continue
                stream = _Stream(connection.start("subscriptions/listen", params(wanted), timeout=0, headers=_HEADERS))
                self._streams.append(stream)
                if await self._opened(connection, stream):
                    delay = FIRST_DELAY
                    if await self._changed_or_lost(stream):
                        continue
                elif not await self._after_refusal(connection, stream):
                    continue
                self.ready.clear()
                await asyncio.sleep(delay)
                delay = min(delay * 2, LONGEST_DELAY)
                missed()
        finally:
            self._end(connection)

    def _nothing_wanted(self, connection: Connection) -> None:
        for stream in list(self._streams):
            self._retire(connection, stream)
        self.ready.set()
        self._tell(frozenset())

    async def _opened(self, connection: Connection, stream: _Stream) -> bool:
        """Wait for the acknowledgement. Older streams end a moment later: what they have heard may be on its way."""
        try:
            async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
                await stream.changed.wait()
        except TimeoutError:
            connection.cancel(stream.exchange, "no acknowledgement in time")
            return False
        if stream.honoured is None:
            return False
        stream.changed.clear()
        loop = asyncio.get_running_loop()
        for older in [each for each in self._streams if each is not stream]:
            timer = loop.call_later(OVERLAP_SECONDS, self._retire, connection, older)
            self._timers = {each for each in self._timers if each.when() > loop.time()} | {timer}
        self.ready.set()
        self._tell(stream.honoured & self._uris)
        return True

    async def _changed_or_lost(self, stream: _Stream) -> bool:
        """True once something else is wanted, False once the stream has ended."""
        loop = asyncio.get_running_loop()
        changed, ended = loop.create_task(self._changed.wait()), loop.create_task(stream.changed.wait())
        try:
            await asyncio.wait((changed, ended), return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            ended.cancel()
        if not stream.exchange.done():
            return True
        if stream in self._streams:
            self._streams.remove(stream)
        return False

    async def _after_refusal(self, connection: Connection, stream: _Stream) -> bool:
        """The server takes no such stream: False where something else can be tried at once, else after a while."""
        self._streams.remove(stream)
        problem = _problem(connection, stream)
        self._tell(problem)
        if not isinstance(problem, RpcError):
            return True
        older = self._streams[-1] if self._streams else None
        if older is not None:
            self._uris = older.honoured or frozenset()
            return not await self._changed_or_lost(older)
        if self._uris:
            log.warning("%s: it takes no subscription to resources: %s", connection.server, problem)
            self._uris = frozenset()
            return False
        self.ready.set()
        await self._changed.wait()
        return False

    def _retire(self, connection: Connection, stream: _Stream) -> None:
        if stream in self._streams:
            self._streams.remove(stream)
        if len(self._streams) == 1:
            self._streams[0].heard.clear()
        if not stream.exchange.done():
            connection.cancel(stream.exchange, "a newer subscription takes its place")

    def _end(self, connection: Connection) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        for stream in self._streams:
            if not stream.exchange.done():
                connection.cancel(stream.exchange, "polyplex is closing")
        self._streams.clear()
        self._asked, self._waiters = [*self._asked, *self._waiters], []
        self._tell(UpstreamLost(connection.server, "the connection has ended"))
        self.ready.set()


def _problem(connection: Connection, stream: _Stream) -> Exception:
    """Why a stream was not acknowledged."""
    exchange = stream.exchange
    if not exchange.done():
        return RpcError(INTERNAL_ERROR, f"{connection.server!r} did not acknowledge the subscription")
    try:
        reply = exchange.result()
    except UpstreamError as error:
        return error
    except asyncio.CancelledError:
        return UpstreamLost(connection.server, "it did not acknowledge the subscription")
    error = decode_error(reply.error or b"{}")
    return RpcError(error.code, error.message or f"{connection.server!r} refused the subscription")
