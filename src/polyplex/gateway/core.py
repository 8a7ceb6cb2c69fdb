"""What every part of the gateway shares: the pool, the views, the clients."""

import asyncio
from pathlib import Path
from typing import Final, Protocol

from polyplex.config import Config, state_database
from polyplex.downstream.session import Call
from polyplex.gateway.builtins import Builtins
from polyplex.gateway.client import Client, call_of, info
from polyplex.gateway.exposure import Exposure
from polyplex.gateway.finding import Allowed, Finder
from polyplex.gateway.levels import Levels
from polyplex.gateway.modern import ModernClients
from polyplex.gateway.parking import Parking
from polyplex.gateway.profile import OWN_NAME, Profiles
from polyplex.gateway.results.service import Results
from polyplex.gateway.returns import Returns
from polyplex.gateway.states import States
from polyplex.gateway.usage import Usage
from polyplex.gateway.views import View, Views
from polyplex.mux.router import Target
from polyplex.protocol.jsonrpc import Fields
from polyplex.protocol.revisions import Era
from polyplex.store.seal import KeyRing, kept_ring, key_of
from polyplex.transports.exchange import Reply
from polyplex.upstreams.manifest import Manifests
from polyplex.upstreams.pool import NO_CAPABILITIES, Pool
from polyplex.upstreams.upstream import Events, State, Upstream
from polyplex.version import version

MAX_PARALLEL: Final = 8


class TaskCalls(Protocol):
    """What the straight line leaves to `polyplex.gateway.tasks`."""

    async def carried(
        self, call: Call, client: Client, upstream: Upstream, target: Target, fields: Fields
    ) -> Reply | None:
        """The reply to a tool call that may become a task; None where it is carried as usual. Raises `RpcError`."""
        ...

    async def rescue(self, call: Call, client: Client, upstream: Upstream, target: Target, fields: Fields) -> Reply:
        """Carry a call again that a server refused for want of the extension."""
        ...

    def passed(self, call: Call, client: Client, upstream: Upstream, result: bytes) -> bytes:
        """A modern server's result, which may be a task, for a modern client."""
        ...


class Core:
    """The shared state, and which session with a server a call goes through."""

    def __init__(self, config: Config, events: Events) -> None:
        self.config = config
        self.info = info(OWN_NAME, OWN_NAME, version())
        self.pool = Pool(config, self.info, events, Manifests(manifest_folder(config)))
        self.clients: dict[str, Client] = {}
        self.levels = Levels(self.clients)
        self.builtins = Builtins()
        self.finder = Finder(config.options.search)
        self.profiles = Profiles(config.options)
        self.views = Views(self.pool, Exposure(config.options, self.builtins.entries), vary=self.profiles.vary)
        self.modern = ModernClients(self.pool.prepare, self.pool.release, self._busy, self.profiles)
        ttl = config.options.parked.ttl_seconds
        self._early: dict[Upstream, list[asyncio.Future[None]]] = {}
        self.parking = Parking(States(lambda: key_ring(config)), ttl)
        self.returns = Returns(self.parking, ttl)
        self.usage = Usage(state_database(config.options.state))
        self.results = Results(config, state_folder(config))
        self.tasks: TaskCalls

    def allowed(self, client: Client) -> Allowed | None:
        """Which entries a client may find; None for all. Search filters by it before it ranks anything."""
        return None

    def everybody(self) -> list[Client]:
        """All clients of both eras."""
        return [*self.clients.values(), *self.modern.all()]

    def _busy(self, client: Client) -> bool:
        """True while a session of this client alone is being opened or has a call under way, parked ones included."""
        owner = f"session:{client.binding.session}"
        for server in self.pool.servers.values():
            upstream = server.find(client.binding)
            if upstream is not None and upstream.key.owner == owner and (upstream.unsettled or calls_on(upstream)):
                return True
        return False

    def view(self, client: Client) -> View:
        """The client's view of the lists."""
        view = client.view
        if view is None or client.version != self.views.version:
            view = client.view = self.views.view(client.binding)
            client.version = self.views.version
        return view

    async def first_lists(self, client: Client, *, exactly: bool = True) -> None:
        """Wait a little for servers that nothing is known of yet; others join later with a list change."""
        left = client.started + self.config.options.first_list_wait_seconds - asyncio.get_running_loop().time()
        if left > 0:
            await self.pool.known(client.binding, left, exactly=exactly)

    def prepare_search(self, client: Client) -> None:
        """Have the search index ready for a client that has listed its tools and has to search for them."""
        if "tools" in client.listed:
            view = self.view(client)
            if view.shown(client.profile).searching:
                self.finder.prepare(view)

    async def upstream(self, client: Client, server: str) -> Upstream:
        """The upstream of a server that serves this client. Raises `UpstreamUnavailable`."""
        binding = client.binding
        if binding.era is Era.MODERN and self.pool.servers[server].asks and binding.capabilities != NO_CAPABILITIES:
            return await self._free_upstream(client, server)
        upstream = await self.pool.resolve(server, client.binding)
        if upstream.state is State.IDLE:
            upstream.start()
        if upstream.connection is None or upstream.key.era not in self.pool.servers[server].speaks:
            # Only then is it sure which era it speaks, and so whose session serves: an earlier run's notes do not tell.
            await upstream.ready()
            upstream = await self.pool.resolve(server, client.binding)
        client.upstreams[server] = upstream
        if upstream in self._early:
            asyncio.get_running_loop().call_soon(self._call_begins, upstream)
        return upstream

    async def told(self, client: Client, upstream: Upstream, level: str) -> Upstream:
        """The upstream for a call that wants log messages, once its server knows. Raises `UpstreamUnavailable`.

        While a server is told, another call may take the session, and another session may have to be told in turn.
        """
        server = upstream.config.name
        while True:
            connection = await upstream.ready()
            peer = connection.peer or upstream.peer
            modern = peer is not None and peer.era is Era.MODERN
            if modern or not await self.levels.want(upstream, level):
                return upstream
            upstream = client.upstreams.get(server) or await self.upstream(client, server)

    def next_call(self, upstream: Upstream) -> asyncio.Future[None]:
        """Done once a call is under way that goes through this session."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._early.setdefault(upstream, []).append(future)
        for client in self.everybody():
            client.upstreams.pop(upstream.config.name, None)
        return future

    def _call_begins(self, upstream: Upstream) -> None:
        for future in self._early.pop(upstream, ()):
            if not future.done():
                future.set_result(None)

    async def _free_upstream(self, client: Client, server: str) -> Upstream:
        """A session in which nothing is under way: one more call, and nobody could say which of them asks.

        Where all are busy, and there may be no more, the first one serves; questions that are not clear are refused.
        """
        own = await self.pool.resolve(server, client.binding)
        for number in range(MAX_PARALLEL if not client.binding.session else 1):
            upstream = own if number == 0 else self.pool.another(server, client.binding, number)
            if not calls_on(upstream):
                await upstream.ready()
            if not calls_on(upstream):  # another call may have come while the session was opened
                return upstream
        await own.ready()
        return own

    def keep_apart(self, upstream: Upstream, session: str) -> None:
        """A server has asked without saying whom; see `ServerPool.keep_apart`."""
        server = self.pool.servers[upstream.config.name]
        if not server.asks:
            server.keep_apart(upstream, session)
            for client in self.everybody():
                client.upstreams.pop(upstream.config.name, None)


def calls_on(upstream: Upstream) -> list[Call]:
    """The client calls under way on an upstream, oldest first."""
    connection = upstream.connection
    if connection is None:
        return []
    found = [call_of(exchange.context) for exchange in connection.in_flight.values()]
    return [call for call in found if call is not None]


def state_folder(config: Config) -> Path:
    """Where state is kept: beside the state database."""
    return state_database(config.options.state).parent


def key_ring(config: Config) -> KeyRing:
    """The configured keys, which all replicas share, or those in the state folder."""
    keys = config.options.parked.keys
    return KeyRing([key_of(key) for key in keys]) if keys else kept_ring(state_folder(config) / "seal.keys")


def manifest_folder(config: Config) -> Path:
    """Where the last known lists are kept."""
    return state_folder(config) / "manifests"
