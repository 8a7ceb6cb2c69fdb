"""Resource subscriptions: counted per server session and URI, kept across reconnects."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    decode_fields,
    decode_text,
    encode_json,
    notification,
)
from polyplex.protocol.revisions import Era
from polyplex.transports.background import Background
from polyplex.transports.exchange import Exchange
from polyplex.upstreams.connection import Connection
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
REQUEST_SECONDS: Final = 30.0
MAX_URIS: Final = 10_000
Send = Callable[[bytes], None]


class _Subscribed:
    """The subscriptions on one server session: for each URI its subscribers, each with its own spelling of it.

    They were made in `connection`; another one knows nothing of them.
    """

    def __init__(self) -> None:
        self.connection: Connection | None = None
        self.uris: dict[str, dict[str, tuple[Send, str]]] = {}
        self.lock = asyncio.Lock()


class Subscriptions:
    """All of them. Subscribers are named by their session or stream; `send` gets the ready notification."""

    def __init__(self) -> None:
        self._by_upstream: dict[Upstream, _Subscribed] = {}
        self._background = Background()

    async def add(self, upstream: Upstream, uri: str, subscriber: str, send: Send, spelling: str) -> None:
        """Subscribe to a server's own URI; updates carry the subscriber's `spelling` of it.

        Raises `RpcError` or `UpstreamError` where the server refuses.
        """
        subscribed = self._by_upstream.setdefault(upstream, _Subscribed())
        async with subscribed.lock:
            senders = subscribed.uris.get(uri)
            if senders is not None:
                senders[subscriber] = (send, spelling)
                return
            if len(subscribed.uris) >= MAX_URIS:
                raise RpcError(INTERNAL_ERROR, f"too many subscriptions on {upstream.config.name!r}")
            subscribed.uris[uri] = {subscriber: (send, spelling)}
            try:
                await self._change(upstream, subscribed, "resources/subscribe", uri)
            except BaseException:
                del subscribed.uris[uri]
                raise
            finally:
                upstream.watched = bool(subscribed.uris)

    async def add_all(self, upstream: Upstream, uris: dict[str, str], subscriber: str, send: Send) -> None:
        """Subscribe to many: the server's own URI by the subscriber's spelling. Afterwards `has` says which were taken.

        A modern server is told of all at once, as each change of the set is a new stream that names every URI. Raises
        `RpcError` or `UpstreamError` where it takes no such stream.
        """
        subscribed = self._by_upstream.setdefault(upstream, _Subscribed())
        async with subscribed.lock:
            new: set[str] = set()
            for spelling, uri in uris.items():
                if uri not in subscribed.uris and len(subscribed.uris) < MAX_URIS:
                    subscribed.uris[uri] = {}
                    new.add(uri)
                if uri in subscribed.uris:
                    subscribed.uris[uri][subscriber] = (send, spelling)
            try:
                await self._subscribe_new(upstream, subscribed, new)
            finally:
                for uri in new:  # those that were taken are not in it any more
                    del subscribed.uris[uri]
                upstream.watched = bool(subscribed.uris)

    async def _subscribe_new(self, upstream: Upstream, subscribed: _Subscribed, new: set[str]) -> None:
        connection = subscribed.connection = await upstream.ready()
        if connection.peer is not None and connection.peer.era is Era.MODERN:
            if new:
                new -= await upstream.listening.watch(subscribed.uris)
            return
        for uri in list(new):
            try:
                await self._change(upstream, subscribed, "resources/subscribe", uri)
            except (RpcError, UpstreamError) as error:
                log.info("%s: it takes no subscription to %s: %s", upstream.config.name, uri, error)
                continue
            new.discard(uri)

    def has(self, upstream: Upstream, uri: str, subscriber: str) -> bool:
        """Whether a subscription to a server's own URI stands."""
        subscribed = self._by_upstream.get(upstream)
        return subscribed is not None and subscriber in subscribed.uris.get(uri, {})

    async def remove(self, upstream: Upstream, uri: str, subscriber: str) -> None:
        """Take a subscription back; the server is told when it was the last one for the URI."""
        subscribed = self._by_upstream.get(upstream)
        if subscribed is None:
            return
        async with subscribed.lock:
            senders = subscribed.uris.get(uri, {})
            if senders.pop(subscriber, None) is not None and not senders:
                del subscribed.uris[uri]
                upstream.watched = bool(subscribed.uris)
                await self._change(upstream, subscribed, "resources/unsubscribe", uri)

    def drop(self, subscriber: str) -> None:
        """Take back everything of one subscriber, in the background."""
        for upstream, subscribed in list(self._by_upstream.items()):
            uris = [uri for uri, senders in subscribed.uris.items() if subscriber in senders]
            if uris:
                self._background.start(self._remove_all(upstream, subscribed, uris, subscriber))

    async def _remove_all(self, upstream: Upstream, subscribed: _Subscribed, uris: list[str], subscriber: str) -> None:
        """All are taken out first, so that a modern server's stream changes once."""
        async with subscribed.lock:
            gone: list[str] = []
            for uri in uris:
                senders = subscribed.uris.get(uri, {})
                if senders.pop(subscriber, None) is not None and not senders:
                    del subscribed.uris[uri]
                    gone.append(uri)
            upstream.watched = bool(subscribed.uris)
            for uri in gone:
                try:
                    await self._change(upstream, subscribed, "resources/unsubscribe", uri)
                except (RpcError, UpstreamError) as error:
                    log.info("%s: unsubscribing failed: %s", upstream.config.name, error)

    # -- towards the server
    async def _change(self, upstream: Upstream, subscribed: _Subscribed, method: str, uri: str) -> None:
        connection = subscribed.connection = await upstream.ready()
        if connection.peer is None or connection.peer.era is Era.LEGACY:
            await connection.request(method, encode_json({"uri": uri}), seconds=REQUEST_SECONDS)
            return
        honoured = await upstream.listening.watch(subscribed.uris)
        if uri in subscribed.uris and uri not in honoured:
            raise RpcError(INVALID_PARAMS, f"{upstream.config.name!r} takes no subscription to {uri}")

    def connected(self, upstream: Upstream) -> None:
        """A session was opened anew: subscribe again to everything, and let nobody miss what changed meanwhile."""
        if self._by_upstream.get(upstream, _Subscribed()).uris:
            self._background.start(self._renew(upstream))

    async def _renew(self, upstream: Upstream) -> None:
        subscribed = self._by_upstream[upstream]
        async with subscribed.lock:
            if subscribed.connection is upstream.connection:
                return
            for uri in list(subscribed.uris):
                try:
                    await self._change(upstream, subscribed, "resources/subscribe", uri)
                except (RpcError, UpstreamError) as error:
                    log.warning("%s: subscribing again to %s failed: %s", upstream.config.name, uri, error)
                self.updated(upstream, None, encode_json({"uri": uri}))

    # -- towards clients
    def updated(self, upstream: Upstream, exchange: Exchange | None, params: bytes | None) -> None:
        """`notifications/resources/updated`: to whoever subscribed to the URI or to one it lies below."""
        subscribed = self._by_upstream.get(upstream)
        if subscribed is None or params is None:
            return
        try:
            fields = decode_fields(params)
            local = decode_text(fields.get("uri", Raw(b"null")))
        except RemoteProtocolError:
            return
        if not upstream.listening.is_news(exchange, local):
            return
        meta = decode_fields(fields["_meta"]) if b'"_meta"' in params and "_meta" in fields else {}
        kept = {key: value for key, value in meta.items() if not key.startswith("io.modelcontextprotocol/")}
        fields.pop("_meta", None)
        if kept:
            fields["_meta"] = Raw(encode_json(kept))
        for uri, senders in list(subscribed.uris.items()):
            if local == uri or local.startswith(uri.rstrip("/") + "/"):
                for send, spelling in list(senders.values()):
                    public = spelling if local == uri else upstream.naming.uri(local)
                    named = fields | {"uri": Raw(encode_json(public))}
                    send(notification("notifications/resources/updated", encode_json(named)))
