"""One supervised upstream: connects, lists, notices losses, tries again, stops when idle."""

import asyncio
import logging
import time
from collections import deque
from enum import StrEnum
from typing import Final, Protocol

import msgspec

from polyplex.config import ServerConfig
from polyplex.errors import RpcError, UpstreamError, UpstreamTimeout, UpstreamUnavailable
from polyplex.mux.entries import Entry, Naming, SetAside
from polyplex.protocol.jsonrpc import encode_json
from polyplex.protocol.revisions import LIST_METHODS, Era
from polyplex.transports.background import Background
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.connection import Asking, Connection, Peer
from polyplex.upstreams.dial import connect
from polyplex.upstreams.fetching import Fetching
from polyplex.upstreams.handshake import Identity
from polyplex.upstreams.listening import Listening
from polyplex.upstreams.lists import Listing
from polyplex.upstreams.offers import Offers
from polyplex.upstreams.patterns import Patterns
from polyplex.upstreams.reconnect import FIRST_SECONDS, Backoff

log = logging.getLogger("polyplex.upstreams")
STDERR_LINES: Final = 200
COALESCE_SECONDS: Final = 0.2
HEALTH_SECONDS: Final = 5.0
EXPIRY_SECONDS: Final = 0.1
CLOSE_SECONDS: Final = 10.0
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class State(StrEnum):
    """Where an upstream is in its life."""

    IDLE = "idle"
    CONNECTING = "connecting"
    READY = "ready"
    WAITING = "waiting"
    STOPPED = "stopped"


class Outgoing(msgspec.Struct, frozen=True, gc=False):
    """A client's request as it leaves for its server. `token` is the client's own progress token.

    A `streamable` result may come as a stream; one that `passes` may also go on to the client as it comes.
    """

    method: str
    params: bytes
    identifier: bytes
    token: bytes | None = None
    headers: list[tuple[str, str]] | None = None
    streamable: bool = False
    passes: bool = False


class Key(msgspec.Struct, frozen=True):
    """What tells two sessions with one server apart: the wanted era, the declared capabilities, and whose it is."""

    era: Era
    capabilities: bytes
    owner: str = ""


class Events(Protocol):
    """What an upstream calls; the gateway implements it."""

    def ask(self, upstream: "Upstream", exchange: Exchange | None, method: str, params: bytes | None) -> Asking:
        """The server asks: whom, is decided now. Raises `RpcError` where nobody can be asked."""
        ...

    def notified_by(self, upstream: "Upstream", exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """The server notifies."""
        ...

    def suspended(self, upstream: "Upstream", exchange: Exchange, retry_ms: int) -> None:
        """The server wants to be polled for the rest of an exchange."""
        ...

    def listed(self, upstream: "Upstream", members: frozenset[str]) -> None:
        """These lists of the server are known, or known anew."""
        ...

    def greeted(self, upstream: "Upstream") -> None:
        """The server has answered the handshake: its era is known."""
        ...

    def connected(self, upstream: "Upstream") -> None:
        """A session has been opened, perhaps in place of one that was lost."""
        ...

    def ended(self, upstream: "Upstream") -> None:
        """The upstream has been stopped for good."""
        ...


class Upstream:
    """A server under one key. `await ready()` gives its connection, connecting first where needed."""

    def __init__(self, config: ServerConfig, key: Key, naming: Naming, info: bytes, events: Events) -> None:
        self.config = config
        self.key = key
        self.naming = naming
        self.identity = Identity(info, key.capabilities)
        self.state = State.IDLE
        self.connection: Connection | None = None
        self.peer: Peer | None = None
        self.error: str | None = None
        self.retry_at = 0.0
        self._complained: str | None = None
        self.restarts = 0
        self.offers = Offers(naming, Patterns(config.options.allow, config.options.deny), config.options.tools)
        self.stderr: deque[str] = deque(maxlen=STDERR_LINES)
        self.users: set[str] = set()
        self.watched = False
        self.tasks: dict[str, float] = {}
        self._events = events
        self._first = key.era
        self._backoff = Backoff()
        options = config.options
        self._timeout = options.timeout_seconds
        self._last = max(options.max_timeout_seconds, options.timeout_seconds)
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._lost = asyncio.Event()
        self._waiters: list[asyncio.Future[None]] = []
        self._stale: set[str] = set()
        self._refresh: asyncio.Task[None] | None = None
        self.listening = Listening()
        self._expired = False
        self.tried = False
        self._background = Background()
        self._fetching = Fetching(self.offers, self._store, lambda members: events.listed(self, members))

    def rekey(self, key: Key) -> None:
        """Serve another key from now on; a session that is opened later declares that key's capabilities."""
        self.key = key
        self.identity = Identity(self.identity.info, key.capabilities)
        self._first = key.era

    # -- life
    def start(self) -> None:
        """Connect now and stay connected."""
        if self._task is None and self.state is not State.STOPPED:
            self._task = asyncio.get_running_loop().create_task(self._supervise(), name=f"upstream {self.config.name}")
        self._wake.set()

    async def stop(self) -> None:
        """Close the session for good."""
        self.state = State.STOPPED
        self._background.cancel()
        self._fetching.late.cancel()
        for task in (self._task, self._refresh):
            if task is not None:
                task.cancel()
        connection, self.connection = self.connection, None
        if connection is not None:
            await connection.close()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=10)
        self._settle()

    async def ready(self) -> Connection:
        """The open connection. Raises `UpstreamUnavailable` where there is none in time, or the breaker is open."""
        connection = self.connection
        if connection is not None and connection.open:
            return connection
        if self.state is State.STOPPED:
            raise UpstreamUnavailable(self.config.name, "it has been stopped")
        if self.state is State.WAITING and self._backoff.breaker_open:
            wait = max(0.0, self.retry_at - asyncio.get_running_loop().time())
            raise UpstreamUnavailable(self.config.name, f"{self.error}; the next attempt is in {wait:.0f} s")
        self.start()
        await self.settled()
        connection = self.connection
        if connection is None or not connection.open:
            raise UpstreamUnavailable(self.config.name, self.error or "it is not connected")
        return connection

    @property
    def unsettled(self) -> bool:
        """True while the first or another attempt is under way."""
        return (
            self._task is not None
            and self.state is State.CONNECTING
            or (self.state is State.IDLE and self._wake.is_set())
        )

    async def settled(self) -> None:
        """Wait until the attempt under way has succeeded or failed."""
        if self.state is State.READY and self.connection is not None and self.connection.open:
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def _settle(self) -> None:
        self.tried = True
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _supervise(self) -> None:
        loop = asyncio.get_running_loop()
        while self.state is not State.STOPPED:
            self._wake.clear()
            self.state = State.CONNECTING
            try:
                await self._connect()
            except UpstreamError as error:
                await self._wait_after(error.message)
                continue
            except Exception as error:
                log.exception("%s: connecting failed inside polyplex", self.config.name)
                await self._wait_after(f"connecting failed inside polyplex: {error}")
                continue
            self._backoff.connected()
            began = loop.time()
            reason = await self._until_lost()
            self._backoff.lasted(loop.time() - began)
            if reason is None:
                self.state = State.IDLE
                await self._wake.wait()
                continue
            self.restarts += 1
            if self._expired and loop.time() - began > EXPIRY_SECONDS:
                log.info("%s: %s; opening a new session", self.config.name, reason)
            elif self._backoff.failures:
                await self._wait_after(reason, tried=False)
            else:
                self._backoff.failures = 1
                log.warning("%s: %s; connecting again", self.config.name, reason)

    async def _wait_after(self, reason: str, *, tried: bool = True) -> None:
        """Wait for the next attempt; a call that comes meanwhile starts it early, unless the breaker is open.

        Early is no sooner than the first delay: many callers would else use up all attempts while a server restarts.
        Who waits already is told of the failure where an attempt was `tried`, else that attempt is still to come.
        """
        delay = self._backoff.failed()
        self.error = reason
        self.retry_at = asyncio.get_running_loop().time() + delay
        self.state = State.WAITING
        level = logging.DEBUG if reason == self._complained else logging.WARNING
        self._complained = reason
        log.log(level, "%s: %s; trying again in %.1f s", self.config.name, reason, delay)
        if tried or self._backoff.breaker_open:
            self._settle()
        if self._backoff.breaker_open:
            self._wake.clear()
            await asyncio.sleep(delay)
            return
        soonest = min(delay, FIRST_SECONDS)
        await asyncio.sleep(soonest)
        try:
            async with asyncio.timeout(delay - soonest):
                await self._wake.wait()
        except TimeoutError:
            pass

    async def _connect(self) -> None:
        connection = await self._dial()
        self.connection, self.peer = connection, connection.peer
        self._events.greeted(self)
        await self._fetch(frozenset(LIST_METHODS.values()))
        if not connection.open:
            self.connection = None
            await connection.close()
            raise UpstreamUnavailable(self.config.name, f"lost while listing: {self.error}")
        self.state, self.error = State.READY, None
        if self._complained is not None:
            self._complained = None
            log.info("%s: connected again", self.config.name)
        if self.peer is not None and self.peer.era is Era.MODERN:
            self._background.start(self.listening.keep(connection, self._filter, self._missed))
        self._settle()
        self._events.connected(self)

    async def _dial(self) -> Connection:
        """Connect. A stdio server that ended at the probe is started once more and greeted in the other era."""
        try:
            return await self._attempt()
        except UpstreamError:
            modern = self.peer is not None and self.peer.era is Era.MODERN
            if self.config.kind != "stdio" or self.key.era is Era.LEGACY or modern or not self._lost.is_set():
                raise
            self._first = Era.MODERN if self._first is Era.LEGACY else Era.LEGACY
            if self._backoff.failures:
                raise
        return await self._attempt()

    async def _attempt(self) -> Connection:
        self._lost.clear()
        return await connect(self.config, self, self.identity, self._first, self.stderr.append)

    async def _until_lost(self) -> str | None:
        """Wait for the end of the session; None when it was ended for being idle."""
        idle = self.config.options.idle_seconds
        loop = asyncio.get_running_loop()
        while True:
            try:
                async with asyncio.timeout(None if idle is None else max(idle / 4, 0.05)):
                    await self._lost.wait()
            except TimeoutError:
                connection = self.connection
                if connection is None or self.busy or idle is None:
                    continue
                if loop.time() - connection.last_used >= idle and not self._wake.is_set():
                    self.connection = None
                    await connection.close("stopped for being idle")
                    return None
                self._wake.clear()
                continue
            connection, self.connection = self.connection, None
            reason = self.error or "the connection was lost"
            if connection is not None and self._expired:
                self._background.start(self._close_expired(connection, reason))
            elif connection is not None:
                await connection.close(reason)
            return reason

    async def _close_expired(self, connection: Connection, reason: str) -> None:
        """Requests under way are told by their own answers that they were not carried out, and are sent again."""
        loop = asyncio.get_running_loop()
        end = loop.time() + CLOSE_SECONDS
        for exchange in list(connection.in_flight.values()):
            while not exchange.done() and loop.time() < end:  # noqa: ASYNC110 - each is awaited by its own call
                await asyncio.sleep(COALESCE_SECONDS)
        await connection.close(reason)

    @property
    def busy(self) -> bool:
        """True while somebody watches its resources, or more is under way than our own stream of notifications.

        Tasks that have not ended count, for as long as they live: `tasks` maps each to its end in `time.monotonic`.
        """
        now = time.monotonic()
        if any(end > now for end in self.tasks.values()):
            return True
        in_flight = {} if self.connection is None else self.connection.in_flight
        return self.watched or any(not self.listening.owns(exchange) for exchange in in_flight.values())

    # -- calls
    def send(self, connection: Connection, outgoing: Outgoing, context: object) -> Exchange:
        """Send a client's request. Await the exchange; what it raises goes to `recover`."""
        return connection.start(
            outgoing.method,
            outgoing.params,
            timeout=self._timeout,
            last=self._last,
            context=context,
            streamable=outgoing.streamable,
            headers=outgoing.headers,
            identifier=outgoing.identifier,
            token=outgoing.token,
        )

    async def recover(
        self, error: BaseException, connection: Connection, exchange: Exchange, outgoing: Outgoing, context: object
    ) -> Reply:
        """Deal with a request that was not answered. It is sent again, once, only where it is known not to have run."""
        if isinstance(error, UpstreamUnavailable):
            connection = await self.ready()
            exchange = self.send(connection, outgoing, context)
            try:
                return await exchange
            except (UpstreamError, asyncio.CancelledError) as second:
                error = second
        if isinstance(error, asyncio.CancelledError):
            connection.cancel(exchange, "the client cancelled the request")
        elif isinstance(error, UpstreamTimeout):
            self._background.start(self._check_health(connection))
        raise error

    async def _check_health(self, connection: Connection) -> None:
        """After a call timed out: a server that does not even answer a ping is started anew."""
        peer = connection.peer
        if peer is None or not connection.open:
            return
        try:
            if peer.era is Era.LEGACY:
                await connection.request("ping", None, seconds=HEALTH_SECONDS)
            else:
                await connection.request("server/discover", self.own_params(), seconds=HEALTH_SECONDS)
        except (UpstreamTimeout, UpstreamUnavailable):
            connection.closed("it stopped answering")
        except (UpstreamError, RpcError):
            return

    def own_params(self, **members: object) -> bytes:
        """Params of a request of our own: these members, and the envelope where the server is a modern one."""
        if self.peer is None or self.peer.era is Era.LEGACY:
            return encode_json(members)
        return encode_json(members | {"_meta": self.identity.envelope(self.peer.revision)})

    def _filter(self, wanted: dict[str, object]) -> bytes:
        return self.own_params(notifications=wanted)

    def _missed(self) -> None:
        """Nobody knows what has changed while there was no stream: anything may have."""
        self.changed(frozenset(LIST_METHODS.values()))
        for uri in self.listening.uris:
            self._events.notified_by(self, None, "notifications/resources/updated", encode_json({"uri": uri}))

    # -- lists
    async def _fetch(self, members: frozenset[str]) -> None:
        if self.connection is not None:
            await self._fetching.fetch(self.connection, self.identity, members)

    def _store(self, member: str, listing: Listing) -> None:
        peer = self.peer
        modern_http = peer is not None and peer.era is Era.MODERN and self.config.kind != "stdio"
        self.offers.store(member, listing, modern_http=modern_http)

    @property
    def lists(self) -> dict[str, list[Entry]]:
        """The entries that clients see, by member."""
        return self.offers.lists

    @property
    def listings(self) -> dict[str, Listing]:
        """The lists as the server gave them, by member."""
        return self.offers.listings

    @property
    def set_aside(self) -> list[SetAside]:
        """What is not offered, and why."""
        return self.offers.set_aside

    def serve_from(self, listings: dict[str, Listing], peer: Peer) -> None:
        """Serve these lists, remembered from an earlier session, until the server has been asked itself."""
        self.peer = peer
        for member, listing in listings.items():
            self._store(member, listing)

    def changed(self, members: frozenset[str]) -> None:
        """The server says that lists have changed; a burst of such notices makes one round of listing."""
        self._stale |= members
        if self._refresh is None or self._refresh.done():
            self._refresh = asyncio.get_running_loop().create_task(self._refresh_soon())

    async def _refresh_soon(self) -> None:
        while self._stale and self.connection is not None:
            await asyncio.sleep(COALESCE_SECONDS)
            members, self._stale = frozenset(self._stale), set()
            await self._fetch(members)

    # -- the handler interface of connections
    def ask(self, exchange: Exchange | None, method: str, params: bytes | None) -> Asking:
        """The server asks its client."""
        return self._events.ask(self, exchange, method, params)

    def notified(self, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """The server notifies."""
        members = _CHANGES.get(method)
        if members is not None:
            self.changed(members)
        elif method != ACKNOWLEDGED or not self.listening.acknowledged(exchange, params):
            self._events.notified_by(self, exchange, method, params)

    def suspended(self, exchange: Exchange, retry_ms: int) -> None:
        """The server wants to be polled for the rest of an exchange."""
        self._events.suspended(self, exchange, retry_ms)

    def lost(self, reason: str, *, expired: bool = False) -> None:
        """The session has ended by itself; `expired` where the server is well and only forgot it."""
        self.error = reason
        self._expired = expired
        self._lost.set()


_CHANGES: Final = {
    "notifications/tools/list_changed": frozenset({"tools"}),
    "notifications/prompts/list_changed": frozenset({"prompts"}),
    "notifications/resources/list_changed": frozenset({"resources", "resourceTemplates"}),
}
