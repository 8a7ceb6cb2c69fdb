"""The composition root: builds the parts, answers clients, passes on what servers say."""

import logging
from collections.abc import Coroutine
from typing import Any, Final

from polyplex.config import Config, state_database
from polyplex.downstream.session import Call, Session
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.gateway import pipeline
from polyplex.gateway.asks import Asks
from polyplex.gateway.builtin.tools import offer
from polyplex.gateway.client import Client, call_of, legacy_client
from polyplex.gateway.core import Core
from polyplex.gateway.listens import Listens
from polyplex.gateway.local import Local
from polyplex.gateway.metrics import Metrics
from polyplex.gateway.notices import Notices
from polyplex.gateway.subscriptions import Subscriptions
from polyplex.gateway.tasks.service import Tasks
from polyplex.protocol.envelope import LOG_LEVEL_KEY, log_level
from polyplex.protocol.jsonrpc import METHOD_NOT_FOUND
from polyplex.protocol.revisions import MODERN, ROUTED_METHODS, TASK_METHODS
from polyplex.transports.background import wait_all
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.connection import Asking
from polyplex.upstreams.pool import Binding
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
_LOG_MARK: Final = LOG_LEVEL_KEY.encode()


class Gateway:
    """One multiplexer. Endpoints call `handle`, `notified` and `closed`; upstreams call the rest."""

    def __init__(self, config: Config) -> None:
        self.core = Core(config, self)
        offer(self.core)
        self.subscriptions = Subscriptions()
        self.tasks = Tasks(self.core, state_database(config.options.state), lambda: self.core.parking.states.ring)
        self.core.tasks = self.tasks.calls
        self.listens = Listens(self.core, self.subscriptions, self.tasks)
        self.asks = Asks(self.core, self.tasks)
        self.notices = Notices(self.core, self.asks, self.subscriptions, self.listens, self.tasks)
        self.metrics = Metrics(self.core)
        self.draining = False
        self._local = Local(self.core, self.subscriptions, self.listens, self.tasks, self.welcome)
        self._started = False

    # -- life
    def start(self, binding: Binding | None = None) -> None:
        """Begin to connect to all servers; returns at once."""
        if not self._started:
            self._started = True
            self.core.pool.start(binding or Binding(MODERN))
            self.core.results.start()

    async def settled(self, seconds: float) -> None:
        """Wait until every server has been tried, for at most `seconds`."""
        await wait_all([upstream.settled() for upstream in self.core.pool.all() if upstream.unsettled], seconds)

    def drain(self) -> None:
        """The end is near: streams that would stay open are ended gracefully."""
        self.draining = True
        self.listens.close()
        self.core.parking.close()
        self.core.modern.close()

    async def stop(self) -> None:
        """Close everything; no child process is left afterwards."""
        self.drain()
        await self.tasks.stop()
        await self.core.finder.stop()
        await self.core.pool.stop()
        await self.core.usage.stop()
        await self.core.results.stop()
        self.core.parking.stop()
        self.notices.stop()

    # -- what endpoints call
    def handle(self, call: Call) -> Coroutine[Any, Any, Reply]:
        """Answer a request. Never raises but for cancellation."""
        if call.method in ROUTED_METHODS:
            try:
                return pipeline.answer(self.core, call, self._client(call))
            except RpcError as error:
                return _refusal(call, error)
        return self._answer(call)

    async def _answer(self, call: Call) -> Reply:
        try:
            client = self._client(call)
            handler = self._local.handlers.get(call.method)
            if handler is None or call.session.era not in handler.eras:
                raise RpcError(METHOD_NOT_FOUND, f"unknown method: {call.method}")
            return Reply(result=await handler.run(call, client))
        except (RpcError, RemoteProtocolError, UpstreamError) as error:
            return pipeline.answer_failure(call, error)

    def _client(self, call: Call) -> Client:
        """The client behind a call; a session that skipped `initialize` gets one all the same."""
        session = call.session
        if session.era is MODERN:
            if call.params is not None and _LOG_MARK in call.params:
                call.log_level = log_level(call.params)
            if not self._started:
                self.start()
            return self.core.modern.find(call)
        client: Client | None = session.context
        if client is None and call.method not in ("initialize", "ping"):
            client = self.welcome(session)
        return client or self.core.modern.plain

    def welcome(self, session: Session) -> Client:
        """A legacy session begins: its capabilities are known now."""
        client = session.context = legacy_client(session, self.core.profiles.of(session.client_info))
        self.core.clients[session.id] = client
        self.start(client.binding)
        self.core.pool.prepare(client.binding)
        return client

    def notified(self, session: Session, method: str, params: bytes | None) -> None:
        """A client notifies."""
        if method == "notifications/initialized":
            session.ready = True
            return
        if method == "notifications/progress":
            self.asks.progress(params)
            return
        if method == "notifications/tasks/status":
            self.tasks.reverse.status(session, params)
            return
        client: Client | None = session.context
        if client is not None and method == "notifications/roots/list_changed":
            for upstream in dict.fromkeys(client.upstreams.values()):
                connection = upstream.connection
                if connection is not None and session.id in upstream.users and b'"roots"' in upstream.key.capabilities:
                    connection.notify(method, params)

    def closed(self, session: Session) -> None:
        """A session has ended."""
        self.tasks.closed(session)
        if self.core.clients.pop(session.id, None) is not None:
            self.subscriptions.drop(session.id)
            self.core.pool.release(session.id)

    # -- what upstreams call
    def ask(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> Asking:
        """A server asks."""
        if method in TASK_METHODS:
            return self.tasks.reverse.ask(upstream, method, params)
        return self.asks.ask(upstream, exchange, method, params)

    def notified_by(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """A server notifies."""
        self.notices.notified(upstream, exchange, method, params)

    def suspended(self, upstream: Upstream, exchange: Exchange, retry_ms: int) -> None:
        """A server wants to be polled for the rest of an exchange; so does polyplex, towards a client that can."""
        call = call_of(exchange.context)
        if call is not None and call.suspend is not None:
            call.suspend(retry_ms)

    def listed(self, upstream: Upstream, members: frozenset[str]) -> None:
        """Lists of a server are known anew."""
        self.core.views.changed()
        self.notices.listed(members)

    def greeted(self, upstream: Upstream) -> None:
        """The era of a server is known; the pool has made use of it."""

    def connected(self, upstream: Upstream) -> None:
        """A session with a server is open, perhaps anew."""
        self.core.views.changed()
        self.subscriptions.connected(upstream)
        self.core.levels.connected(upstream)

    def ended(self, upstream: Upstream) -> None:
        """An upstream has been stopped for good."""
        self.core.views.changed()
        for client in self.core.everybody():
            for server in [name for name, other in client.upstreams.items() if other is upstream]:
                del client.upstreams[server]

    # -- what health shows
    def health(self) -> tuple[bool, dict[str, object]]:
        """Ready once every server has been tried: one that is down is reported, and does not take the others away."""
        servers = {name: server.report() for name, server in self.core.pool.servers.items()}
        ready = not self.draining and all(server.tried for server in self.core.pool.servers.values())
        return ready, {"ready": ready, "servers": servers, "sessions": len(self.core.clients)}


async def _refusal(call: Call, error: RpcError) -> Reply:
    return pipeline.answer_failure(call, error)
