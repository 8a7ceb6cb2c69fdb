"""What polyplex answers itself: handshakes, lists, levels, subscriptions."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from msgspec import Raw

from polyplex.downstream.session import Call, Session
from polyplex.errors import RpcError
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.listens import Listens
from polyplex.gateway.pipeline import read_target
from polyplex.gateway.profile import Profile
from polyplex.gateway.subscriptions import Subscriptions
from polyplex.gateway.tasks.service import Tasks
from polyplex.gateway.views import View
from polyplex.protocol import envelope
from polyplex.protocol.bridge.requests import known_capabilities
from polyplex.protocol.bridge.results import finish
from polyplex.protocol.bridge.tasks import EXTENSION
from polyplex.protocol.envelope import LOG_LEVELS
from polyplex.protocol.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, Fields, decode_fields, decode_text, encode_json
from polyplex.protocol.revisions import LIST_METHODS, MODERN_REVISIONS, R2025_11_25, Era, negotiate

DISCOVER_TTL_MS: Final = 60_000
Run = Callable[[Call, Client], Awaitable[bytes]]
_BOTH: Final = frozenset({Era.LEGACY, Era.MODERN})
_LEGACY: Final = frozenset({Era.LEGACY})
_MODERN: Final = frozenset({Era.MODERN})


class Handler(NamedTuple):
    """A method and the eras that have it."""

    run: Run
    eras: frozenset[Era]


class Local:
    """The handlers by method."""

    def __init__(
        self,
        core: Core,
        subscriptions: Subscriptions,
        listens: Listens,
        tasks: Tasks,
        welcome: Callable[[Session], Client],
    ) -> None:
        self._core = core
        self._subscriptions = subscriptions
        self._listens = listens
        self._welcome = welcome
        self.handlers: dict[str, Handler] = {
            "initialize": Handler(self._initialize, _LEGACY),
            "ping": Handler(self._ping, _LEGACY),
            "logging/setLevel": Handler(self._set_level, _LEGACY),
            "resources/subscribe": Handler(self._subscribe, _LEGACY),
            "resources/unsubscribe": Handler(self._unsubscribe, _LEGACY),
            "server/discover": Handler(self._discover, _MODERN),
            "subscriptions/listen": Handler(self._listen, _MODERN),
            "tasks/get": Handler(tasks.get, _BOTH),
            "tasks/cancel": Handler(tasks.cancel, _BOTH),
            "tasks/update": Handler(tasks.update, _MODERN),
            "tasks/result": Handler(tasks.result, _LEGACY),
            "tasks/list": Handler(tasks.list, _LEGACY),
        } | {method: Handler(self._list, _BOTH) for method in LIST_METHODS}

    async def _ping(self, call: Call, client: Client) -> bytes:
        return b"{}"

    # -- handshakes
    async def _initialize(self, call: Call, client: Client) -> bytes:
        """Capabilities are the union of the servers'; what is not known yet counts as there."""
        session = call.session
        if session.context is not None:
            raise RpcError(INVALID_REQUEST, "this session has been initialized already")
        fields = decode_fields(call.params or b"{}")
        if "protocolVersion" not in fields:
            raise RpcError(INVALID_PARAMS, "params.protocolVersion is missing")
        session.revision = call.revision = negotiate(decode_text(fields["protocolVersion"]))
        session.capabilities = known_capabilities(_object(fields, "capabilities"), session.revision)
        session.client_info = _object(fields, "clientInfo")
        client = self._welcome(session)
        await self._core.first_lists(client, exactly=False)
        view = self._core.view(client)
        result: dict[str, object] = {
            "protocolVersion": session.revision,
            "capabilities": self._capabilities(view, client.profile, "experimental")
            | task_capabilities(view, session.revision),
            "serverInfo": Raw(self._core.info),
        }
        instructions = view.instructions(client.profile)
        if instructions is not None:
            result["instructions"] = instructions
        return encode_json(result)

    async def _discover(self, call: Call, client: Client) -> bytes:
        await self._core.first_lists(client, exactly=False)
        view = self._core.view(client)
        fields: dict[str, object] = {
            "supportedVersions": list(MODERN_REVISIONS),
            "capabilities": self._capabilities(view, client.profile, "experimental", "extensions"),
        }
        instructions = view.instructions(client.profile)
        if instructions is not None:
            fields["instructions"] = instructions
        fields["_meta"] = {envelope.SERVER_INFO_KEY: Raw(self._core.info)}
        return finish(call.method, decode_fields(encode_json(fields)), DISCOVER_TTL_MS, "private")

    def _capabilities(self, view: View, profile: Profile, *members: str) -> dict[str, object]:
        """What the servers offer; payloads are resources, though none is ever listed."""
        merged = {member: view.extensions(member) for member in members}
        if "extensions" in members and view.has_tasks():
            merged["extensions"].setdefault(EXTENSION, Raw(b"{}"))
        offered = view.capabilities(profile) | {member: found for member, found in merged.items() if found}
        return offered if self._core.results.off else offered | {"resources": offered.get("resources", {})}

    # -- lists
    async def _list(self, call: Call, client: Client) -> bytes:
        await self._core.first_lists(client)
        fields = decode_fields(call.params or b"{}")
        raw = fields.get("cursor", Raw(b"null"))
        cursor = None if bytes(raw) == b"null" else decode_text(raw)
        view = self._core.view(client)
        client.listed[LIST_METHODS[call.method]] = view.digest(LIST_METHODS[call.method], client.profile)
        self._core.prepare_search(client)
        core_tasks = call.session.revision == R2025_11_25
        return view.page(call.method, cursor, client.binding.era, tasks=core_tasks, profile=client.profile)

    # -- levels and subscriptions of legacy clients
    async def _set_level(self, call: Call, client: Client) -> bytes:
        level = decode_text(decode_fields(call.params or b"{}").get("level", Raw(b"null")))
        if level not in LOG_LEVELS:
            raise RpcError(INVALID_PARAMS, f"unknown log level {level!r}; one of {', '.join(LOG_LEVELS)}")
        call.session.log_level = level
        client.level_changed()
        upstreams = [upstream for upstream in self._core.view(client).upstreams if upstream.connection is not None]
        own = [server.find(client.binding) for server in self._core.pool.servers.values()]
        await self._core.levels.changed([*upstreams, *(upstream for upstream in own if upstream is not None)])
        return b"{}"

    async def _subscribe(self, call: Call, client: Client) -> bytes:
        uri = decode_text(decode_fields(call.params or b"{}").get("uri", Raw(b"null")))
        target = read_target(self._core.view(client).routes, call, uri)
        upstream = await self._core.upstream(client, target.server)
        await self._subscriptions.add(upstream, target.local, call.session.id, call.session.send, uri)
        return b"{}"

    async def _unsubscribe(self, call: Call, client: Client) -> bytes:
        uri = decode_text(decode_fields(call.params or b"{}").get("uri", Raw(b"null")))
        target = read_target(self._core.view(client).routes, call, uri)
        upstream = await self._core.upstream(client, target.server)
        await self._subscriptions.remove(upstream, target.local, call.session.id)
        return b"{}"

    # -- streams of modern clients
    async def _listen(self, call: Call, client: Client) -> bytes:
        await self._core.first_lists(client)
        return await self._listens.serve(call, client)


def _object(fields: Fields, name: str) -> bytes:
    raw = bytes(fields.get(name, Raw(b"{}")))
    return raw if raw[:1] == b"{" else b"{}"


def task_capabilities(view: View, revision: str) -> dict[str, object]:
    """Core tasks exist in 2025-11-25 only; polyplex lists and cancels them whatever the server can."""
    if revision != R2025_11_25 or not view.has_tasks(unknown=True):
        return {}
    return {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}}
