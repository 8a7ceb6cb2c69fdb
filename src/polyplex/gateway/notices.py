"""What servers notify, on its way to the clients it concerns."""

import asyncio
import logging
from typing import Final

from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.gateway.asks import Asks
from polyplex.gateway.client import Client, call_of
from polyplex.gateway.core import Core, calls_on
from polyplex.gateway.levels import call_wants, rank_of, session_wants
from polyplex.gateway.listens import Listens
from polyplex.gateway.subscriptions import Subscriptions
from polyplex.gateway.tasks.service import Tasks
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import decode_fields, encode_json
from polyplex.protocol.revisions import LIST_METHODS, Era, knows_notice
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


class Notices:
    """Progress, log messages, updates and list changes."""

    def __init__(self, core: Core, asks: Asks, subscriptions: Subscriptions, listens: Listens, tasks: Tasks) -> None:
        self._core = core
        self._tasks = tasks
        self._asks = asks
        self._subscriptions = subscriptions
        self._listens = listens
        self._background = Background()
        self._changed: set[str] = set()
        self._flush: asyncio.TimerHandle | None = None

    def notified(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """A server notifies; list changes have been dealt with before."""
        call = None if exchange is None else call_of(exchange.context)
        if call is None and self._tasks.watching.notified(upstream, exchange, method, params):
            return
        if method == "notifications/progress":
            self._progress(exchange, call, params)
        elif method == "notifications/message":
            self._message(upstream, call, params)
        elif method == "notifications/resources/updated":
            self._subscriptions.updated(upstream, exchange, params)
        elif method == "notifications/elicitation/complete":
            session = self._asks.elicited(upstream, params)
            if session is not None and knows_notice(method, session.revision):
                session.send(jsonrpc.notification(method, params))
        else:
            self._other(upstream, call, method, params)

    def _progress(self, exchange: Exchange | None, call: Call | None, params: bytes | None) -> None:
        if exchange is None or call is None or exchange.token is None or params is None:
            return
        fields = decode_fields(params) | {"progressToken": Raw(exchange.token)}
        call.send(jsonrpc.notification("notifications/progress", encode_json(fields)))

    def _message(self, upstream: Upstream, call: Call | None, params: bytes | None) -> None:
        """To the call it belongs to; else to the sessions that share the upstream, which are all one principal's.

        Modern clients get what belongs to a call of theirs only: on stdio, where nothing says so, to the only one under
        way. What may be of two goes to neither.
        """
        rank = rank_of(params)
        call = call or _only_asking(upstream)
        frame = jsonrpc.notification("notifications/message", params)
        if call is not None:
            if call_wants(call, rank):
                call.send(frame)
            return
        under_way = calls_on(upstream)
        if len(under_way) == 1 and under_way[0].session.era is Era.MODERN and call_wants(under_way[0], rank):
            under_way[0].send(frame)
        calls = {each.session.id: each for each in under_way}
        for session_id in upstream.users:
            client = self._core.clients.get(session_id)
            if client is None or not session_wants(client.session, rank):
                continue
            own = calls.get(session_id)
            if own is not None and client.session.attached is None:
                own.send(frame)
            else:
                client.session.send(frame)

    def _other(self, upstream: Upstream, call: Call | None, method: str, params: bytes | None) -> None:
        frame = jsonrpc.notification(method, params)
        if call is not None:
            if knows_notice(method, call.session.revision):
                call.send(frame)
            return
        for session_id in upstream.users:
            client = self._core.clients.get(session_id)
            if client is not None and knows_notice(method, client.session.revision):
                client.session.send(frame)

    def stop(self) -> None:
        """Nobody is left to be told."""
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None

    # -- list changes
    def listed(self, members: frozenset[str]) -> None:
        """Lists are known anew: clients whose own list differs from what they were given are told, soon."""
        self._changed |= members
        if self._flush is None:
            self._flush = asyncio.get_running_loop().call_later(COALESCE_SECONDS, self._tell)

    def _tell(self) -> None:
        self._flush = None
        members, self._changed = self._changed, set()
        for client in self._core.everybody():
            self._core.prepare_search(client)
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
            if member in members and known is not None and known != view.digest(member, client.profile):
                client.listed[member] = view.digest(member, client.profile)
                differing.append(member)
        return differing


def _only_asking(upstream: Upstream) -> Call | None:
    """The one call under way that named a level: modern servers send messages for no other (2026-07-28, "Logging")."""
    if upstream.peer is None or upstream.peer.era is Era.LEGACY:
        return None
    asking = [call for call in calls_on(upstream) if call.log_level or call.session.log_level]
    return asking[0] if len(asking) == 1 else None
