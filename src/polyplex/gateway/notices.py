"""What servers notify, on its way to the clients it concerns."""

import asyncio
import logging
from typing import Final

from msgspec import Raw

from polyplex.downstream.session import Call, Session
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.gateway.asks import Asks
from polyplex.gateway.client import Client, call_of
from polyplex.gateway.core import Core, calls_on
from polyplex.gateway.listens import Listens
from polyplex.gateway.subscriptions import Subscriptions
from polyplex.protocol import jsonrpc
from polyplex.protocol.envelope import LOG_LEVELS
from polyplex.protocol.jsonrpc import decode_fields, encode_json
from polyplex.protocol.revisions import LIST_METHODS, Era
from polyplex.transports.background import Background
from polyplex.transports.exchange import Exchange
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
NOTICE_OF: Final = {
    "tools": "notifications/tools/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resources": "notifications/resources/list_changed",
    "resourceTemplates": "notifications/resources/list_changed",
}
COALESCE_SECONDS: Final = 0.05
LEVEL_SECONDS: Final = 5.0
_RANK: Final = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class Notices:
    """Progress, log messages, updates and list changes."""

    def __init__(self, core: Core, asks: Asks, subscriptions: Subscriptions, listens: Listens) -> None:
        self._core = core
        self._asks = asks
        self._subscriptions = subscriptions
        self._listens = listens
        self._background = Background()
        self._changed: set[str] = set()
        self._flush: asyncio.TimerHandle | None = None

    def notified(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """A server notifies; list changes have been dealt with before."""
        call = None if exchange is None else call_of(exchange.context)
        if method == "notifications/progress":
            self._progress(exchange, call, params)
        elif method == "notifications/message":
            self._message(upstream, call, params)
        elif method == "notifications/resources/updated":
            self._subscriptions.updated(upstream, exchange, params)
        elif method == "notifications/elicitation/complete":
            session = self._asks.elicited(upstream, params)
            if session is not None:
                session.send(jsonrpc.notification(method, params))
        else:
            self._other(upstream, call, method, params)

    def _progress(self, exchange: Exchange | None, call: Call | None, params: bytes | None) -> None:
        if exchange is None or call is None or exchange.token is None or params is None:
            return
        fields = decode_fields(params) | {"progressToken": Raw(exchange.token)}
        call.send(jsonrpc.notification("notifications/progress", encode_json(fields)))

    def _message(self, upstream: Upstream, call: Call | None, params: bytes | None) -> None:
        """To the call it belongs to; else to the sessions that share the upstream, which are all one principal's."""
        rank = _rank(params)
        frame = jsonrpc.notification("notifications/message", params)
        if call is not None:
            if _wants(call.session, rank):
                call.send(frame)
            return
        calls = {each.session.id: each for each in calls_on(upstream)}
        for session_id in upstream.users:
            client = self._core.clients.get(session_id)
            if client is None or not _wants(client.session, rank):
                continue
            own = calls.get(session_id)
            if own is not None and client.session.attached is None:
                own.send(frame)
            else:
                client.session.send(frame)

    def _other(self, upstream: Upstream, call: Call | None, method: str, params: bytes | None) -> None:
        frame = jsonrpc.notification(method, params)
        if call is not None:
            call.send(frame)
            return
        for session_id in upstream.users:
            client = self._core.clients.get(session_id)
            if client is not None:
                client.session.send(frame)

    # -- list changes
    def listed(self, members: frozenset[str]) -> None:
        """Lists are known anew: clients whose own list differs from what they were given are told, soon."""
        self._changed |= members
        if self._flush is None:
            self._flush = asyncio.get_running_loop().call_later(COALESCE_SECONDS, self._tell)

    def _tell(self) -> None:
        self._flush = None
        members, self._changed = self._changed, set()
        for client in list(self._core.clients.values()):
            for method in dict.fromkeys(NOTICE_OF[member] for member in self._differing(client, members)):
                client.session.send(jsonrpc.notification(method))
        for client in self._core.modern.all():
            self._listens.changed(client, self._differing(client, members))

    def _differing(self, client: Client, members: set[str]) -> list[str]:
        view = self._core.view(client)
        differing: list[str] = []
        for member in LIST_METHODS.values():
            known = client.listed.get(member)
            if member in members and known is not None and known != view.digest(member):
                client.listed[member] = view.digest(member)
                differing.append(member)
        return differing

    # -- log levels
    def connected(self, upstream: Upstream) -> None:
        """A new session with a server knows no level yet."""
        sessions = [client.session for client in self._sharing(upstream) if client.session.log_level is not None]
        if sessions:
            self._background.start(self._set_level(upstream))

    async def set_level(self, client: Client) -> None:
        """The client wants another level: every server behind it gets the lowest that any of its clients wants."""
        upstreams = [upstream for upstream in self._core.view(client).upstreams if upstream.connection is not None]
        own = [server.find(client.binding) for server in self._core.pool.servers.values()]
        wanted = dict.fromkeys((*upstreams, *(upstream for upstream in own if upstream is not None)))
        await asyncio.gather(*(self._set_level(upstream) for upstream in wanted))

    async def _set_level(self, upstream: Upstream) -> None:
        connection, peer = upstream.connection, upstream.peer
        if connection is None or peer is None or peer.era is Era.MODERN or "logging" not in peer.capabilities:
            return
        levels = [client.session.log_level for client in self._sharing(upstream)]
        lowest = min((_RANK[level] for level in levels if level is not None), default=None)
        if lowest is None:
            return
        params = encode_json({"level": LOG_LEVELS[lowest]})
        try:
            await connection.request("logging/setLevel", params, seconds=LEVEL_SECONDS)
        except (UpstreamError, RpcError) as error:
            log.info("%s: logging/setLevel failed: %s", upstream.config.name, error)

    def _sharing(self, upstream: Upstream) -> list[Client]:
        clients = self._core.clients
        return [clients[session] for session in upstream.users if session in clients]


def _rank(params: bytes | None) -> int:
    try:
        level = decode_fields(params or b"{}").get("level", Raw(b'"info"'))
    except RemoteProtocolError:
        return 0
    return _RANK.get(bytes(level).strip(b'"').decode("utf-8", "replace"), 0)


def _wants(session: Session, rank: int) -> bool:
    """Without a level a legacy client gets what the server sends; a modern one asked for nothing and gets nothing."""
    if session.log_level is None:
        return session.era is Era.LEGACY
    return rank >= _RANK[session.log_level]
