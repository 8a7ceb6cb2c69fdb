"""`tasks/list` (2025-11-25) over all servers: those that list tasks, one by one, then what polyplex knows of."""

import asyncio
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.tasks import talk
from polyplex.gateway.tasks.methods import TaskMethods
from polyplex.gateway.tasks.registry import Registry, core_of
from polyplex.mux import cursors
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import Fields, decode_fields, decode_text, encode_json
from polyplex.protocol.revisions import Era
from polyplex.store.tasks import KnownTask
from polyplex.upstreams.upstream import Upstream

PAGE_TASKS: Final = 50
MAX_EMPTY: Final = 16
METHOD: Final = "tasks/list"
_decode_tasks = msgspec.json.Decoder(list[Raw]).decode


class _Place(msgspec.Struct, array_like=True, frozen=True):
    """Where a page starts: at a server's own cursor, or, with no server, behind a number of what is remembered."""

    server: str = ""
    cursor: str | None = None
    number: int = 0


_decode_place = msgspec.json.Decoder(_Place).decode


class TaskList:
    """The pages of one merged list."""

    def __init__(self, core: Core, registry: Registry, methods: TaskMethods) -> None:
        self._core = core
        self._registry = registry
        self._methods = methods

    async def page(self, call: Call, client: Client) -> bytes:
        """A page: the first that has a task on it, or an empty one after many without. Raises `RpcError` -32602.

        A server may give empty pages without end; the client decides how long to follow them.
        """
        raw = talk.fields_of(call).get("cursor", Raw(b"null"))
        servers = self._listing(client)
        place: _Place | None = _Place(next(iter(servers), ""))
        if bytes(raw) != b"null":
            place = _decode_place(cursors.unseal(METHOD, decode_text(raw))[0])
        tasks: list[bytes] = []
        for _ in range(MAX_EMPTY + len(servers)):
            if place is None or tasks:
                break
            if place.server:
                tasks, place = await self._of_server(call, client, servers, place)
            else:
                tasks, place = await self._remembered(call, client, servers, place.number)
        result: Fields = {"tasks": Raw(b"[" + b",".join(tasks) + b"]")}
        if place is not None:
            result["nextCursor"] = Raw(encode_json(cursors.seal(METHOD, encode_json(place).decode(), 0)))
        return encode_json(result)

    def _listing(self, client: Client) -> dict[str, Upstream]:
        """The servers that list tasks themselves, by name."""
        found: dict[str, Upstream] = {}
        for upstream in self._core.view(client).upstreams:
            peer = upstream.peer
            if peer is not None and peer.tasks and peer.era is Era.LEGACY and bridge.lists_tasks(peer.capabilities):
                found[upstream.config.name] = upstream
        return dict(sorted(found.items()))

    async def _of_server(
        self, call: Call, client: Client, servers: dict[str, Upstream], place: _Place
    ) -> tuple[list[bytes], _Place]:
        """A server's own page. One that cannot be reached is passed over, so that the others' tasks can be listed."""
        later = next((name for name in servers if name > place.server), "")
        try:
            upstream = await self._core.upstream(client, place.server)
            members: Fields = {} if place.cursor is None else {"cursor": Raw(encode_json(place.cursor))}
            reply = await talk.carry(upstream, talk.prepare(call, client, upstream, METHOD, members))
            answer = talk.answer_of(reply, upstream, client, METHOD)
        except (UpstreamError, KeyError):
            return [], _Place(later)
        except RpcError:
            if place.cursor is not None:
                raise
            return [], _Place(later)
        tasks = self._public(client, upstream, answer)
        following = answer.get("nextCursor", Raw(b"null"))
        if bytes(following)[:1] == b'"':
            return tasks, _Place(place.server, decode_text(following))
        return tasks, _Place(later)

    def _public(self, client: Client, upstream: Upstream, answer: Fields) -> list[bytes]:
        """The tasks of a page with their public ids, without those of other callers."""
        caller = client.binding.caller
        public: list[bytes] = []
        try:
            entries = _decode_tasks(answer.get("tasks", Raw(b"[]")))
        except msgspec.DecodeError as error:
            raise talk.unusable(upstream, METHOD, error) from None
        for raw in entries:
            try:
                task = decode_fields(raw)
                local = bridge.local_id(task)
            except RemoteProtocolError:
                continue
            if not self._registry.hidden(upstream, local, caller):
                public.append(encode_json(bridge.renamed(task, self._registry.public_id(upstream, local, caller))))
        return public

    async def _remembered(
        self, call: Call, client: Client, servers: dict[str, Upstream], after: int
    ) -> tuple[list[bytes], _Place | None]:
        """Tasks of the servers that do not list them, and those that polyplex holds."""
        known = self._registry.page(client.binding.caller, after, PAGE_TASKS)
        shown = [task for task in known if task.held or task.server not in servers]
        cores = await asyncio.gather(*(self._now(call, client, task) for task in shown))
        place = _Place(number=known[-1].number) if len(known) == PAGE_TASKS else None
        return [encode_json(core) for core in cores if core is not None], place

    async def _now(self, call: Call, client: Client, known: KnownTask) -> Fields | None:
        """The task as it is now; as it was where its server cannot be reached, None where it is no more."""
        core = core_of(known)
        if known.held or known.cancelled or bridge.status(core) in bridge.TERMINAL:
            return core
        try:
            subject = await self._methods.subject(call, client, known.id)
            return await self._methods.core(call, client, subject)
        except RpcError:
            return None
        except UpstreamError:
            return core
