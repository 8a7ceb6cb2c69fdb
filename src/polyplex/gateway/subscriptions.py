"""Resource subscriptions: counted per server session and URI, kept across reconnects."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.protocol.jsonrpc import (
    INTERNAL_ERROR,
    decode_error,
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
    """The subscriptions on one server session; `listen` is the stream that carries them where the server is modern."""

    def __init__(self) -> None:
        self.uris: dict[str, dict[str, tuple[Send, str]]] = {}
        self.listen: Exchange | None = None
        self.lock = asyncio.Lock()


class _Acknowledgement:
    """The context of our listen requests: set when the server acknowledges."""

    def __init__(self) -> None:
        self.event = asyncio.Event()


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
            for uri in [uri for uri, senders in subscribed.uris.items() if subscriber in senders]:
                self._background.start(self._remove_quietly(upstream, uri, subscriber))

    async def _remove_quietly(self, upstream: Upstream, uri: str, subscriber: str) -> None:
        try:
            await self.remove(upstream, uri, subscriber)
        except (RpcError, UpstreamError) as error:
            log.info("%s: unsubscribing failed: %s", upstream.config.name, error)

    # -- towards the server
    async def _change(self, upstream: Upstream, subscribed: _Subscribed, method: str, uri: str) -> None:
        connection = await upstream.ready()
        if connection.peer is not None and connection.peer.era is Era.MODERN:
            await self._listen(upstream, connection, subscribed)
        else:
            await connection.request(method, encode_json({"uri": uri}), seconds=REQUEST_SECONDS)

    async def _listen(self, upstream: Upstream, connection: Connection, subscribed: _Subscribed) -> None:
        """A listen request cannot be changed: open one for the new set, then close the old, so that none is missed."""
        older, subscribed.listen = subscribed.listen, None
        if subscribed.uris:
            params = upstream.own_params(notifications={"resourceSubscriptions": list(subscribed.uris)})
            context = _Acknowledgement()
            headers = [("Mcp-Method", "subscriptions/listen")]
            exchange = connection.start("subscriptions/listen", params, timeout=0, context=context, headers=headers)
            await self._acknowledgement(upstream, connection, exchange, context)
            subscribed.listen = exchange
        if older is not None and not older.done():
            connection.cancel(older, "a newer subscription takes its place")

    async def _acknowledgement(
        self, upstream: Upstream, connection: Connection, exchange: Exchange, context: _Acknowledgement
    ) -> None:
        exchange.on_done = lambda _: context.event.set()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                await context.event.wait()
        except TimeoutError:
            connection.cancel(exchange, "no acknowledgement in time")
            raise RpcError(INTERNAL_ERROR, f"{upstream.config.name!r} did not acknowledge the subscription") from None
        if exchange.done():
            reply = exchange.result()
            error = decode_error(reply.error or b"{}")
            raise RpcError(error.code, error.message or f"{upstream.config.name!r} refused the subscription")

    def acknowledged(self, exchange: Exchange | None) -> None:
        """A server acknowledges one of our listen requests."""
        if exchange is not None and isinstance(exchange.context, _Acknowledgement):
            exchange.context.event.set()

    def connected(self, upstream: Upstream) -> None:
        """A session was opened anew: subscribe again to everything."""
        if self._by_upstream.get(upstream, _Subscribed()).uris:
            self._background.start(self._renew(upstream))

    async def _renew(self, upstream: Upstream) -> None:
        subscribed = self._by_upstream[upstream]
        async with subscribed.lock:
            subscribed.listen = None
            for uri in list(subscribed.uris):
                try:
                    await self._change(upstream, subscribed, "resources/subscribe", uri)
                except (RpcError, UpstreamError) as error:
                    log.warning("%s: subscribing again to %s failed: %s", upstream.config.name, uri, error)
                if subscribed.listen is not None:
                    return

    # -- towards clients
    def updated(self, upstream: Upstream, params: bytes | None) -> None:
        """`notifications/resources/updated`: to whoever subscribed to the URI or to one it lies below."""
        subscribed = self._by_upstream.get(upstream)
        if subscribed is None or params is None:
            return
        try:
            fields = decode_fields(params)
            local = decode_text(fields.get("uri", Raw(b"null")))
        except RemoteProtocolError:
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
