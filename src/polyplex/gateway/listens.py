"""`subscriptions/listen` of modern clients (2026-07-28, "Subscriptions")."""

import asyncio
import logging
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RpcError, UpstreamError
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.pipeline import read_target
from polyplex.gateway.subscriptions import Subscriptions
from polyplex.gateway.tasks.service import Tasks
from polyplex.protocol.bridge.tasks import require_extension
from polyplex.protocol.envelope import SUBSCRIPTION_KEY
from polyplex.protocol.jsonrpc import INVALID_PARAMS, decode_fields, encode_json, notification
from polyplex.protocol.revisions import LIST_METHODS, Era
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
ACKNOWLEDGE_SECONDS: Final = 3.0
SUBSCRIBE_SECONDS: Final = 30.0
MAX_LISTENS: Final = 10_000
MAX_URIS: Final = 1000
MAX_EARLY: Final = 1000
_FILTER_OF: Final = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
    "resourceTemplates": "resourcesListChanged",
}
_NOTICE_OF: Final = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}


class _Filter(msgspec.Struct):
    toolsListChanged: bool = False
    promptsListChanged: bool = False
    resourcesListChanged: bool = False
    resourceSubscriptions: list[str] = []
    taskIds: list[str] = []


class _Stream:
    """One client's stream: what it wants, and its id in every notification."""

    def __init__(self, call: Call, client: Client) -> None:
        self.call = call
        self.client = client
        self.wanted: set[str] = set()
        self.subscribed: list[tuple[Upstream, str]] = []
        self.ended = asyncio.Event()
        self._early: dict[bytes, None] | None = {}

    @property
    def name(self) -> str:
        return f"listen:{id(self)}"

    def acknowledge(self, honoured: dict[str, object]) -> None:
        """Say what is honoured, the first message ("Subscriptions", "Acknowledgment"), then what came early."""
        early, self._early = self._early or {}, None
        self.send(notification("notifications/subscriptions/acknowledged", encode_json({"notifications": honoured})))
        for frame in early:
            self.send(frame)

    def send(self, frame: bytes) -> None:
        """Send a ready notification with the subscription's id added; it waits for the acknowledgement."""
        if self._early is not None:
            self._early.pop(frame, None)
            self._early[frame] = None
            if len(self._early) > MAX_EARLY:
                del self._early[next(iter(self._early))]
            return
        message = decode_fields(frame)
        params = decode_fields(message["params"]) if "params" in message else {}
        meta = decode_fields(params["_meta"]) if "_meta" in params else {}
        params["_meta"] = Raw(encode_json(meta | {SUBSCRIPTION_KEY: Raw(self.call.id)}))
        message["params"] = Raw(encode_json(params))
        self.call.send(encode_json(message))


class Listens:
    """All streams that are open."""

    def __init__(self, core: Core, subscriptions: Subscriptions, tasks: Tasks) -> None:
        self._core = core
        self._tasks = tasks
        self._subscriptions = subscriptions
        self._streams: set[_Stream] = set()

    async def serve(self, call: Call, client: Client) -> bytes:
        """Serve a stream until the client closes it (by cancellation) or we do (a result ends it)."""
        wanted = _read(call)
        if wanted.taskIds:
            require_extension(decode_fields(call.params or b"{}"))
        if len(self._streams) >= MAX_LISTENS:
            raise RpcError(INVALID_PARAMS, f"too many subscriptions; at most {MAX_LISTENS}")
        stream = _Stream(call, client)
        honoured = self._honoured(wanted, client)
        watch = self._tasks.watching.watch(call, client, stream.send)
        try:
            tasks = await watch.open(wanted.taskIds)
            uris = await self._subscribe(stream, wanted, client)
            await self._servers_listening(client)
            self._note_lists(client)
            acknowledged: dict[str, object] = {**honoured}
            if uris:
                acknowledged["resourceSubscriptions"] = uris
            if tasks:
                acknowledged["taskIds"] = tasks
            stream.acknowledge(acknowledged)
            stream.wanted = set(honoured)
            self._streams.add(stream)
            await stream.ended.wait()
            meta = {SUBSCRIPTION_KEY: Raw(call.id)}
            return encode_json({"resultType": "complete", "_meta": meta})
        finally:
            self._streams.discard(stream)
            watch.close()
            self._subscriptions.drop(stream.name)

    def _honoured(self, wanted: _Filter, client: Client) -> dict[str, bool]:
        capabilities = self._core.view(client).capabilities()
        names = ((name, _FILTER_OF[name]) for name in ("tools", "prompts", "resources") if name in capabilities)
        return {filter_name: True for _, filter_name in names if getattr(wanted, filter_name)}

    async def _subscribe(self, stream: _Stream, wanted: _Filter, client: Client) -> list[str]:
        """The URIs that a server takes a subscription for; others are left out of the acknowledgement."""
        by_upstream: dict[Upstream, dict[str, str]] = {}
        for uri in wanted.resourceSubscriptions[:MAX_URIS]:
            try:
                target = read_target(self._core.view(client).routes, stream.call, uri)
                upstream = await self._core.upstream(client, target.server)
            except (RpcError, UpstreamError) as error:
                log.info("a subscription to %s is not honoured: %s", uri, error)
                continue
            by_upstream.setdefault(upstream, {})[uri] = target.local
        taken = await asyncio.gather(*(self._subscribe_at(each, stream, uris) for each, uris in by_upstream.items()))
        honoured = {uri for each in taken for uri in each}
        return [uri for uri in wanted.resourceSubscriptions[:MAX_URIS] if uri in honoured]

    async def _subscribe_at(self, upstream: Upstream, stream: _Stream, uris: dict[str, str]) -> list[str]:
        """Those of one server, for which it has a limited time in all: the client waits for the acknowledgement."""
        try:
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                await self._subscriptions.add_all(upstream, uris, stream.name, stream.send)
        except TimeoutError:
            log.warning("%s: it did not answer all subscriptions in time", upstream.config.name)
        except (RpcError, UpstreamError) as error:
            log.info("%s: it takes no subscriptions: %s", upstream.config.name, error)
        return [uri for uri, local in uris.items() if self._subscriptions.has(upstream, local, stream.name)]

    async def _servers_listening(self, client: Client) -> None:
        """Acknowledge only once the servers' own streams are open, so that no change falls between."""
        modern = [
            upstream
            for upstream in self._core.view(client).upstreams
            if upstream.connection is not None and upstream.peer is not None and upstream.peer.era is Era.MODERN
        ]
        if modern:
            waits = asyncio.gather(*(upstream.listening.ready.wait() for upstream in modern))
            try:
                async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
                    await waits
            except TimeoutError:
                log.info("some servers have not acknowledged their subscriptions yet")

    def _note_lists(self, client: Client) -> None:
        view = self._core.view(client)
        for member in LIST_METHODS.values():
            client.listed.setdefault(member, view.digest(member, client.profile))

    def changed(self, client: Client, members: list[str]) -> None:
        """Lists have changed for clients of this kind."""
        names = dict.fromkeys(_FILTER_OF[member] for member in members)
        for stream in list(self._streams):
            for name in names:
                if name in stream.wanted and stream.client is client:
                    stream.send(notification(_NOTICE_OF[name]))

    def close(self) -> None:
        """End all streams gracefully."""
        for stream in list(self._streams):
            stream.ended.set()


def _read(call: Call) -> _Filter:
    raw = decode_fields(call.params or b"{}").get("notifications", Raw(b"{}"))
    try:
        return msgspec.json.decode(raw, type=_Filter)
    except msgspec.DecodeError as error:
        raise RpcError(INVALID_PARAMS, f"params.notifications: {error}") from None
