"""The composition root: builds the pool, answers clients, passes on what servers say."""

import asyncio
import logging
from pathlib import Path
from typing import Final

from polyplex.config import Config, state_dir
from polyplex.downstream.session import Call, Session
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.gateway import pipeline
from polyplex.gateway.asks import Asks
from polyplex.gateway.client import Client, info, legacy_client
from polyplex.gateway.listens import Listens
from polyplex.gateway.local import Local
from polyplex.gateway.metrics import Metrics
from polyplex.gateway.notices import Notices
from polyplex.gateway.subscriptions import Subscriptions
from polyplex.gateway.views import View, Views
from polyplex.protocol.envelope import LOG_LEVEL_KEY
from polyplex.protocol.jsonrpc import METHOD_NOT_FOUND, decode_fields, decode_text
from polyplex.protocol.revisions import LATEST_MODERN, ROUTED_METHODS, Era
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.manifest import Manifests
from polyplex.upstreams.pool import Binding, Pool
from polyplex.upstreams.upstream import State, Upstream
from polyplex.version import version

log = logging.getLogger("polyplex.gateway")
_LOG_MARK: Final = LOG_LEVEL_KEY.encode()


class Gateway:
    """One multiplexer. Endpoints call `handle`, `notified` and `closed`; upstreams call the rest."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.info = info("polyplex", "polyplex", version())
        self.pool = Pool(config, self.info, self, Manifests(manifest_folder(config)))
        self.views = Views(self.pool)
        self.clients: dict[str, Client] = {}
        self.modern = self._modern_client()
        self.subscriptions = Subscriptions(self)
        self.listens = Listens(self)
        self.notices = Notices(self)
        self.asks = Asks(self)
        self._local = Local(self)
        self._started = False
        self.draining = False
        self.metrics = Metrics(self)

    def _modern_client(self) -> Client:
        session = Session(Era.MODERN, LATEST_MODERN, http=True, identifier="modern")
        return Client(session, Binding(Era.MODERN), {})

    # -- life
    def start(self, binding: Binding | None = None) -> None:
        """Begin to connect to all servers; returns at once."""
        if not self._started:
            self._started = True
            self.pool.start(binding or Binding(Era.MODERN))

    async def settled(self, seconds: float) -> None:
        """Wait until every server has been tried, for at most `seconds`."""
        waiting = [asyncio.ensure_future(upstream.settled()) for upstream in self.pool.all() if upstream.unsettled]
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=seconds)
            for task in late:
                task.cancel()

    async def stop(self) -> None:
        """Close everything; no child process is left afterwards."""
        self.draining = True
        self.listens.close()
        await self.pool.stop()

    # -- what endpoints call
    async def handle(self, call: Call) -> Reply:
        """Answer a request. Never raises but for cancellation."""
        try:
            client = self.client(call)
            if call.method in ROUTED_METHODS:
                return await pipeline.run(self, call, client)
            handler = self._local.handlers.get(call.method)
            if handler is None or call.session.era not in handler.eras:
                raise RpcError(METHOD_NOT_FOUND, f"unknown method: {call.method}")
            return Reply(result=await handler.run(call, client))
        except (RpcError, RemoteProtocolError, UpstreamError) as error:
            return pipeline.answer_failure(call, error)

    def client(self, call: Call) -> Client:
        """The client behind a call; a session that skipped `initialize` gets one all the same."""
        session = call.session
        if session.era is Era.MODERN:
            if call.params is not None and _LOG_MARK in call.params:
                meta = decode_fields(decode_fields(call.params)["_meta"])
                if LOG_LEVEL_KEY in meta:
                    session.log_level = decode_text(meta[LOG_LEVEL_KEY])
            self.start()
            return self.modern
        client: Client | None = session.context
        if client is None and call.method not in ("initialize", "ping"):
            client = self.welcome(session)
        return client or self.modern

    def welcome(self, session: Session) -> Client:
        """A legacy session begins: its capabilities are known now."""
        client = session.context = legacy_client(session)
        self.clients[session.id] = client
        self.start(client.binding)
        self.pool.prepare(client.binding)
        return client

    def notified(self, session: Session, method: str, params: bytes | None) -> None:
        """A client notifies."""
        if method == "notifications/initialized":
            session.ready = True
            return
        client: Client | None = session.context
        if client is not None and method == "notifications/roots/list_changed":
            for upstream in dict.fromkeys(client.upstreams.values()):
                connection = upstream.connection
                if connection is not None and session.id in upstream.users and b'"roots"' in upstream.key.capabilities:
                    connection.notify(method, params)

    def closed(self, session: Session) -> None:
        """A session has ended."""
        if self.clients.pop(session.id, None) is not None:
            self.subscriptions.drop(session)
            self.pool.release(session.id)

    # -- what the pipeline needs
    def view(self, client: Client) -> View:
        """The client's view of the lists."""
        view = client.view
        if view is None or client.version != self.views.version:
            view = client.view = self.views.view(client.binding)
            client.version = self.views.version
        return view

    async def upstream(self, client: Client, server: str) -> Upstream:
        """The upstream of a server that serves this client."""
        upstream = await self.pool.resolve(server, client.binding)
        if upstream.state is State.IDLE:
            upstream.start()
        if upstream.peer is None:
            await upstream.ready()
            upstream = await self.pool.resolve(server, client.binding)
        client.upstreams[server] = upstream
        return upstream

    # -- what upstreams call
    async def ask(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> Reply:
        """A server asks."""
        return await self.asks.ask(upstream, exchange, method, params)

    def notified_by(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """A server notifies."""
        self.notices.notified(upstream, exchange, method, params)

    def listed(self, upstream: Upstream, members: frozenset[str]) -> None:
        """Lists of a server are known anew."""
        self.views.changed()
        self.notices.listed(upstream, members)

    def connected(self, upstream: Upstream) -> None:
        """A session with a server is open, perhaps anew."""
        self.views.changed()
        self.subscriptions.connected(upstream)
        self.notices.connected(upstream)

    def ended(self, upstream: Upstream) -> None:
        """An upstream has been stopped for good."""
        self.views.changed()
        for client in (*self.clients.values(), self.modern):
            for server in [name for name, other in client.upstreams.items() if other is upstream]:
                del client.upstreams[server]

    # -- what health shows
    def health(self) -> tuple[bool, dict[str, object]]:
        """Whether every server that should be up is, and the state of each."""
        servers = {name: server.report() for name, server in self.pool.servers.items()}
        ready = not self.draining and all(report["state"] in ("ready", "idle") for report in servers.values())
        return ready, {"ready": ready, "servers": servers, "sessions": len(self.clients)}


def manifest_folder(config: Config) -> Path:
    """Where the last known lists are kept: beside the state database."""
    state = config.options.state
    if state is not None and state.startswith("sqlite:"):
        return Path(state.removeprefix("sqlite:")).parent / "manifests"
    return state_dir() / "manifests"
