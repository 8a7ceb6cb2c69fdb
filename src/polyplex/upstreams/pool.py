"""All upstreams: one for each server and key, found by who asks."""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

import msgspec

from polyplex.config import Config, ServerConfig
from polyplex.mux.entries import Naming
from polyplex.mux.uris import uri_label
from polyplex.protocol.revisions import Era
from polyplex.transports.background import Background, wait_all
from polyplex.transports.exchange import Exchange
from polyplex.upstreams.connection import Asking
from polyplex.upstreams.manifest import Manifests
from polyplex.upstreams.upstream import Events, Key, State, Upstream

log = logging.getLogger("polyplex.upstreams")
REAP_SECONDS: Final = 15.0
NO_CAPABILITIES: Final = b"{}"


class Binding(msgspec.Struct, frozen=True):
    """What of a client decides which sessions serve it."""

    era: Era
    capabilities: bytes = NO_CAPABILITIES
    session: str = ""
    caller: str = "local"


class ServerPool:
    """The sessions with one server."""

    def __init__(self, config: ServerConfig, naming: Naming, info: bytes, events: Events) -> None:
        self.config = config
        self.naming = naming
        self.upstreams: dict[Key, Upstream] = {}
        self.speaks: dict[Era, bool] = {Era.MODERN: False} if config.kind == "sse" else {}
        self.base: Upstream | None = None
        self.asks = False
        self.plain: set[bytes] = {NO_CAPABILITIES}
        self._info = info
        self._events = events

    def key(self, binding: Binding) -> Key:
        """The key for a binding, as far as the eras of the server are known."""
        era = binding.era
        if self.speaks.get(era) is False:
            era = Era.LEGACY if era is Era.MODERN else Era.MODERN
        plain = binding.capabilities == NO_CAPABILITIES
        if plain and self.config.kind == "stdio" and self.speaks.get(Era.MODERN):
            era = Era.MODERN  # a client that cannot be asked anything loses nothing by sharing the process
        capabilities = binding.capabilities if era is Era.LEGACY else NO_CAPABILITIES
        return Key(era, capabilities, self._owner(binding, era is Era.LEGACY, capabilities))

    def _owner(self, binding: Binding, legacy: bool, capabilities: bytes) -> str:
        """Roots become part of a stdio server's state, and a server that has asked may ask again: neither is shared."""
        isolation = self.config.options.isolation
        if binding.era is Era.MODERN:
            if binding.session and legacy:
                return f"session:{binding.session}"
            return "" if isolation in ("auto", "shared") else f"caller:{binding.caller}"
        apart = (b'"roots"' in capabilities and self.config.kind == "stdio") or (
            self.asks and capabilities != NO_CAPABILITIES
        )
        if isolation == "session" or (isolation == "auto" and apart):
            return f"session:{binding.session}"
        return f"caller:{binding.caller}" if isolation == "caller" else ""

    def keep_apart(self, upstream: Upstream, session: str) -> None:
        """The server asks, over a stream that does not say whom: from now on each client has a session of its own.

        The session in use becomes that of `session` where nobody else uses it.
        """
        if self.config.options.isolation != "auto":
            return
        self.asks = True
        if upstream.key.owner or upstream.users != {session}:
            return
        self.drop(upstream)
        upstream.key = Key(upstream.key.era, upstream.key.capabilities, f"session:{session}")
        self.upstreams[upstream.key] = upstream

    def find(self, binding: Binding) -> Upstream | None:
        """The upstream for a binding, where it exists."""
        return self.upstreams.get(self.key(binding))

    def create(self, binding: Binding) -> Upstream:
        """The upstream for a binding, made where there is none."""
        return self._made(self.key(binding))

    def another(self, binding: Binding, number: int) -> Upstream:
        """One more session for a binding, beside its own."""
        key = self.key(binding)
        return self._made(Key(key.era, key.capabilities, f"{key.owner}#{number}"))

    def _made(self, key: Key) -> Upstream:
        upstream = self.upstreams.get(key)
        if upstream is None:
            upstream = self.upstreams[key] = Upstream(self.config, key, self.naming, self._info, self._events)
            if self.base is None:
                self.base = upstream
        return upstream

    async def resolve(self, binding: Binding) -> Upstream:
        """The upstream for a binding. While the server's eras are not known yet, the first session finds out."""
        upstream = self.find(binding)
        base = self.base
        if upstream is None and base is not None and base.key.era is not binding.era and not self.speaks:
            base.start()
            await base.settled()
        return upstream or self.create(binding)

    def learned(self, upstream: Upstream) -> Upstream | None:
        """A session is open: note which eras the server speaks, and offer the session under both keys it fits.

        Where another session serves that key already, this one was opened to find out; the other is returned.
        """
        peer = upstream.peer
        if peer is None:
            return None
        wanted = upstream.key.era
        self.speaks[peer.era] = True
        if peer.era is wanted:
            return None
        self.speaks[wanted] = False
        key = Key(peer.era, upstream.key.capabilities, upstream.key.owner)
        if peer.era is Era.MODERN:
            # Modern servers learn of capabilities with each request, so nothing but isolation keeps clients apart.
            shared = self.config.options.isolation in ("auto", "shared")
            key = Key(Era.MODERN, NO_CAPABILITIES, "" if shared else upstream.key.owner)
            if key not in self.upstreams:
                upstream.rekey(key)
        other = self.upstreams.setdefault(key, upstream)
        return None if other is upstream or upstream is self.base else other

    def compare(self) -> None:
        """Note for which capabilities the server lists the same as for those of the first session."""
        base = self.base
        for upstream in self.all():
            if base is None or not base.lists or not upstream.lists:
                continue
            if base.lists == upstream.lists:
                self.plain.add(upstream.key.capabilities)
            else:
                self.plain.discard(upstream.key.capabilities)

    @property
    def tried(self) -> bool:
        """True once the first attempt to connect is over, or where none is to be made before a call."""
        base = self.base
        return base is not None and (base.tried or (base.state is State.IDLE and not base.unsettled))

    def report(self) -> dict[str, object]:
        """The state of the server, as health shows it."""
        upstream = self.base
        if upstream is None:
            return {"state": "idle"}
        report: dict[str, object] = {"state": str(upstream.state), "sessions": len(self.all())}
        if upstream.peer is not None:
            report |= {"era": str(upstream.peer.era), "revision": upstream.peer.revision}
        if upstream.error is not None:
            report["error"] = upstream.error
        report["tools"] = len(upstream.lists.get("tools", ()))
        report["restarts"] = upstream.restarts
        if upstream.set_aside:
            report["setAside"] = [{"name": item.name, "reason": item.reason} for item in upstream.set_aside]
        return report

    def all(self) -> list[Upstream]:
        """Every upstream once."""
        return list(dict.fromkeys(self.upstreams.values()))

    def drop(self, upstream: Upstream) -> None:
        """Forget an upstream that is being stopped."""
        for key in [key for key, other in self.upstreams.items() if other is upstream]:
            del self.upstreams[key]


class Pool:
    """All servers. Implements the events of upstreams by passing them on to the gateway's `events`."""

    def __init__(self, config: Config, info: bytes, events: Events, manifests: Manifests) -> None:
        self._events = events
        self._manifests = manifests
        self._background = Background()
        self._timers: dict[Upstream, asyncio.TimerHandle] = {}
        self._opening: dict[str, Background] = {}
        prefix = config.options.naming == "prefix"
        self.servers = {
            name: ServerPool(server, Naming(name, uri_label(name), prefix), info, self)
            for name, server in config.servers.items()
            if server.enabled
        }

    def start(self, binding: Binding) -> None:
        """Connect all servers for a binding; lazy ones only where nothing is remembered of them."""
        for server in self.servers.values():
            upstream = server.create(binding)
            self._remember(server, upstream)
            if not server.config.options.lazy or not upstream.lists:
                upstream.start()

    def prepare(self, binding: Binding) -> None:
        """A client has come: have the sessions for it opened, in the background where the eras are not known yet."""
        for server in self.servers.values():
            if server.find(binding) is not None or server.speaks or server.base is None:
                self._open_for(server, server.create(binding), binding)
            else:
                opening = self._opening.setdefault(binding.session, Background())
                opening.start(self._open_later(server, binding))

    async def _open_later(self, server: ServerPool, binding: Binding) -> None:
        self._open_for(server, await server.resolve(binding), binding)

    def _open_for(self, server: ServerPool, upstream: Upstream, binding: Binding) -> None:
        """Lists that do not depend on capabilities are known from the first session: the rest can wait for a call."""
        self._use(upstream, binding)
        self._remember(server, upstream)
        known = upstream.key.capabilities in server.plain and server.base is not None and server.base.lists
        lazy = server.config.options.lazy or (known and upstream is not server.base)
        if not lazy and upstream.state is State.IDLE:
            upstream.start()

    async def resolve(self, server: str, binding: Binding) -> Upstream:
        """The upstream that serves a binding. `server` must be one of `servers`."""
        pool = self.servers[server]
        upstream = await pool.resolve(binding)
        self._use(upstream, binding)
        self._remember(pool, upstream)
        return upstream

    def another(self, server: str, binding: Binding, number: int) -> Upstream:
        """One more session for a binding; it ends when it has not been needed for a while."""
        pool = self.servers[server]
        upstream = pool.another(binding, number)
        self._remember(pool, upstream)
        self._reap_later(pool, upstream)
        return upstream

    def _use(self, upstream: Upstream, binding: Binding) -> None:
        if binding.session:
            upstream.users.add(binding.session)
        elif binding.capabilities != NO_CAPABILITIES:
            upstream.users.add(f"modern:{binding.caller}")
        timer = self._timers.pop(upstream, None)
        if timer is not None:
            timer.cancel()

    def _remember(self, server: ServerPool, upstream: Upstream) -> None:
        if upstream.lists or upstream.state is not State.IDLE:
            return
        known = self._manifests.load(server.config, upstream.key.capabilities)
        if known is not None:
            upstream.serve_from(*known)
            self._events.listed(upstream, frozenset(known[0]))

    def release(self, session: str) -> None:
        """A client session has ended: stop what served it alone, at once or after a while."""
        opening = self._opening.pop(session, None)
        if opening is not None:
            opening.cancel()
        for server in self.servers.values():
            for upstream in server.all():
                if session not in upstream.users:
                    continue
                upstream.users.discard(session)
                if upstream.key.owner == f"session:{session}":
                    self._reap(server, upstream)
                elif not upstream.users and upstream is not server.base:
                    self._reap_later(server, upstream)

    def _reap_later(self, server: ServerPool, upstream: Upstream) -> None:
        if upstream not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[upstream] = loop.call_later(REAP_SECONDS, self._reap_unused, server, upstream)

    def _reap_unused(self, server: ServerPool, upstream: Upstream) -> None:
        self._timers.pop(upstream, None)
        if upstream.busy:
            self._reap_later(server, upstream)
        elif not upstream.users:
            self._reap(server, upstream)

    def _reap(self, server: ServerPool, upstream: Upstream) -> None:
        server.drop(upstream)
        if server.base is upstream:
            server.base = next(iter(server.upstreams.values()), None)
        self._events.ended(upstream)
        self._background.start(upstream.stop())

    async def stop(self) -> None:
        """Close all sessions; returns when no child process is left."""
        for timer in self._timers.values():
            timer.cancel()
        for opening in self._opening.values():
            opening.cancel()
        upstreams = self.all()
        await asyncio.gather(*(upstream.stop() for upstream in upstreams), return_exceptions=True)
        await self._background.finish()

    def all(self) -> list[Upstream]:
        """Every upstream of every server."""
        return [upstream for server in self.servers.values() for upstream in server.all()]

    def seen(self, server: ServerPool, binding: Binding) -> Upstream | None:
        """Whose lists a client is shown: its own session's, else those of any session that has some."""
        own = server.find(binding)
        if own is not None and own.lists:
            return own
        candidates: Iterable[Upstream | None] = (server.base, *server.upstreams.values())
        return next((upstream for upstream in candidates if upstream is not None and upstream.lists), own)

    async def known(self, binding: Binding, seconds: float, *, exactly: bool) -> None:
        """Wait until each server has been tried, unless its lists are known; at most `seconds`.

        With `exactly` they must be those for the binding's own capabilities, else any session's will do.
        """
        shown = [
            (server.find(binding) or server.base) if exactly else self.seen(server, binding) or server.base
            for server in self.servers.values()
        ]
        waiting = [each.settled() for each in shown if each is not None and not each.lists and each.unsettled]
        await wait_all(waiting, seconds)

    async def server_of(self, name: str, binding: Binding) -> None:
        """A name that is not listed may be that of a server that nothing is known of yet: wait until it was tried."""
        for server in self.servers.values():
            upstream = server.find(binding) or server.base
            if upstream is None or upstream.lists or not server.naming.may_own(name):
                continue
            if upstream.connection is None:
                await upstream.ready()
            elif upstream.unsettled:  # its lists are on their way
                await upstream.settled()

    # -- the events of upstreams
    def ask(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> Asking:
        """The server asks."""
        return self._events.ask(upstream, exchange, method, params)

    def notified_by(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """The server notifies."""
        self._events.notified_by(upstream, exchange, method, params)

    def suspended(self, upstream: Upstream, exchange: Exchange, retry_ms: int) -> None:
        """The server wants to be polled for the rest of an exchange."""
        self._events.suspended(upstream, exchange, retry_ms)

    def listed(self, upstream: Upstream, members: frozenset[str]) -> None:
        """Lists of a server are known anew."""
        self.servers[upstream.config.name].compare()
        self._events.listed(upstream, members)
        peer = upstream.peer
        whole = all(listing.failure is None for listing in upstream.listings.values())
        if peer is not None and upstream.connection is not None and whole:
            lists = dict(upstream.listings)
            self._background.start(self._manifests.save(upstream.config, upstream.key.capabilities, lists, peer))

    def ended(self, upstream: Upstream) -> None:
        """An upstream has been stopped for good."""
        self._events.ended(upstream)

    def greeted(self, upstream: Upstream) -> None:
        """The era of a server is known; not its lists, as it may wait for a call before it answers those."""
        server = self.servers[upstream.config.name]
        other = server.learned(upstream)
        if other is not None:
            other.users |= upstream.users
            upstream.users.clear()
            self._reap_later(server, upstream)

    def connected(self, upstream: Upstream) -> None:
        """A session is open."""
        self._events.connected(upstream)
