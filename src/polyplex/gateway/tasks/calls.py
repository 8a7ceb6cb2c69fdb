"""Tool calls that become tasks: for clients that want one, and for servers that work no other way."""

import asyncio
import logging
from enum import Enum
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.gateway import pipeline, rounds
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.tasks import talk
from polyplex.gateway.tasks.legacy import LegacyTasks
from polyplex.gateway.tasks.live import Live
from polyplex.gateway.tasks.modern import ModernTasks
from polyplex.gateway.tasks.registry import DEFAULT_TTL_MS, Registry, iso_now
from polyplex.mux.router import Target
from polyplex.protocol import envelope
from polyplex.protocol.bridge import requests
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import INVALID_PARAMS, Fields, decode_fields, encode_json
from polyplex.protocol.revisions import R2025_11_25, Era
from polyplex.transports.background import Background
from polyplex.transports.exchange import Reply
from polyplex.upstreams.connection import Peer
from polyplex.upstreams.upstream import Outgoing, Upstream

log = logging.getLogger("polyplex.gateway")
_ABSENT: Final = (None, Raw(b"null"))


class Mode(Enum):
    """What becomes of a call: `GIVE` the client a task, `WAIT` for one to end, or (`PLAIN`) leave out the wish."""

    GIVE = "give"
    WAIT = "wait"
    PLAIN = "plain"


class TaskCalls:
    """Implements what the straight line calls; see `Core.tasks`."""

    def __init__(
        self, core: Core, registry: Registry, legacy: LegacyTasks, modern: ModernTasks, endings: Background
    ) -> None:
        self._core = core
        self._registry = registry
        self._legacy = legacy
        self._modern = modern
        self._endings = endings

    # -- what the pipeline calls
    async def carried(
        self, call: Call, client: Client, upstream: Upstream, target: Target, fields: Fields
    ) -> Reply | None:
        """The reply to a tool call that may become a task; None where it is carried as usual. Raises `RpcError`."""
        mode = None if upstream.peer is None else mode_of(call, client, upstream.peer, target, fields)
        return None if mode is None else await self._run(mode, call, client, upstream, target, fields)

    async def rescue(self, call: Call, client: Client, upstream: Upstream, target: Target, fields: Fields) -> Reply:
        """A server that does not say so beforehand needs the extension: the call did not run, so it is sent again."""
        return await self._run(Mode.WAIT, call, client, upstream, target, fields)

    def passed(self, call: Call, client: Client, upstream: Upstream, result: bytes) -> bytes:
        """A modern server's result for a modern client: a task gets its public id, all else stays as it is.

        Raises `UpstreamLost` for a task that the client does not take, which no server may make.
        """
        made = _created(upstream, result, Era.MODERN)
        if made is None:
            return result
        if not bridge.declares_extension(talk.fields_of(call)):
            raise talk.unusable(upstream, call.method, ValueError("a task, which the client does not take"))
        live = self._record(call, client, upstream, made, quiet=False)
        return encode_json(bridge.renamed(made.task, live.public))

    # -- the steps
    async def _run(
        self, mode: Mode, call: Call, client: Client, upstream: Upstream, target: Target, fields: Fields
    ) -> Reply:
        """Carry a call in such a mode. Raises `RpcError` or `UpstreamError`."""
        era = talk.era_of(upstream)
        outgoing = pipeline.prepare(call, client, upstream, target, fields, era)
        outgoing = _adapted(outgoing, mode, client, era, fields)
        reply = await talk.carry(upstream, outgoing, call)
        if era is Era.MODERN and rounds.needs_input(reply.result):
            reply = await rounds.answered(call, client, upstream, outgoing, reply)
        if reply.result is None:
            if client.binding.era is Era.LEGACY:
                return pipeline.refused(call, reply.error or talk.NO_ANSWER, era, fields)
            return await pipeline.without_result(self._core, call, client, upstream, target, reply, fields)
        made = None if mode is Mode.PLAIN else _created(upstream, reply.result, era)
        if made is None:
            return await self._at_once(mode, call, client, upstream, target, reply.result, fields)
        live = self._record(call, client, upstream, made, quiet=mode is Mode.WAIT)
        if outgoing.token is not None:
            self._registry.lives.track(outgoing.identifier, outgoing.token, live)
        if mode is Mode.GIVE:
            return Reply(result=_given(made, live, era, client.binding.era))
        return await self._wait(call, client, live, target, fields)

    async def _at_once(
        self, mode: Mode, call: Call, client: Client, upstream: Upstream, target: Target, result: bytes, fields: Fields
    ) -> Reply:
        """The server answered without a task. A client that asked for one gets a task that is finished."""
        finished = pipeline.finish(call, result, talk.era_of(upstream), upstream.naming)
        finished = await self._core.results.small(call, client, target, finished)
        if mode is not Mode.GIVE or client.binding.era is Era.MODERN:
            return Reply(result=finished)
        wanted = decode_fields(fields["task"]).get("ttl")
        task = self._registry.hold(client.binding.caller, finished, wanted)
        return Reply(result=bridge.created_core(task, {}))

    def _record(self, call: Call, client: Client, upstream: Upstream, made: bridge.Created, *, quiet: bool) -> Live:
        live = self._registry.record(upstream, made.local, client.binding.caller, made.task, quiet=quiet)
        live.session = call.session if client.binding.era is Era.LEGACY else None
        return live

    async def _wait(self, call: Call, client: Client, live: Live, target: Target, fields: Fields) -> Reply:
        """The outcome of a task that the client knows nothing of; it is cancelled where the client gives up."""
        live.waiting.append(call)
        era, limit = talk.era_of(live.upstream), live.upstream.config.options.max_timeout_seconds
        servers = self._modern if era is Era.MODERN else self._legacy
        try:
            reply = await servers.outcome(call, client, live, limit)
        except (asyncio.CancelledError, RpcError, UpstreamError):
            self._endings.start(self._give_up(call, client, live))
            raise
        finally:
            live.waiting.remove(call)
        self._registry.forget(live)
        if reply.result is None and client.binding.era is Era.MODERN:
            return await pipeline.without_result(self._core, call, client, live.upstream, target, reply, fields)
        if reply.result is None:
            return pipeline.refused(call, reply.error or talk.NO_ANSWER, era, fields)
        result = reply.result
        if bridge.RELATED_MARK in result:
            result = encode_json(bridge.with_related(decode_fields(result), None))
        finished = pipeline.finish(call, result, era, live.upstream.naming)
        return Reply(result=await self._core.results.small(call, client, target, finished))

    async def _give_up(self, call: Call, client: Client, live: Live) -> None:
        """Nobody waits for the task any more: its server is told, once."""
        try:
            servers = self._modern if talk.era_of(live.upstream) is Era.MODERN else self._legacy
            await servers.cancel(call, client, live)
        except (RpcError, UpstreamError, RemoteProtocolError) as error:
            log.info("%s: cancelling a task failed: %s", live.upstream.config.name, error)
        self._registry.forget(live)


def mode_of(call: Call, client: Client, peer: Peer, target: Target, fields: Fields) -> Mode | None:
    """How a tool call is carried; None where it is none of our business. Raises `RpcError`.

    A client of 2025-11-25 asks for a task, a modern one says that it takes one, the others never see any.
    """
    if call.method != "tools/call":
        return None
    asked = "task" in fields
    plain = Mode.PLAIN if asked else None
    support = "optional" if peer.era is Era.MODERN else "" if target.entry is None else target.entry.tasks
    able = peer.tasks and support in bridge.SUPPORTED
    if client.binding.era is Era.MODERN:
        if peer.era is Era.MODERN:
            return None
        if able and bridge.declares_extension(fields):
            return Mode.GIVE
    elif asked and call.session.revision >= R2025_11_25 and fields["task"] not in _ABSENT:
        if not able:
            raise bridge.not_a_task_tool(target.local)
        if bytes(fields["task"])[:1] != b"{":
            raise RpcError(INVALID_PARAMS, "params.task must be an object")
        return Mode.GIVE
    elif able and peer.era is Era.MODERN:
        return Mode.WAIT
    return Mode.WAIT if able and support == "required" else plain


def _created(upstream: Upstream, result: bytes, era: Era) -> bridge.Created | None:
    try:
        return bridge.created(result, era)
    except RemoteProtocolError as error:
        raise talk.unusable(upstream, "tools/call", error) from None


def _given(made: bridge.Created, live: Live, era: Era, client: Era) -> bytes:
    """The task in the client's words."""
    meta = {key: value for key, value in made.meta.items() if key not in (envelope.SERVER_INFO_KEY, bridge.RELATED_KEY)}
    if client is Era.MODERN:
        return bridge.created_flat(bridge.to_flat(made.task, live.public, iso_now()), meta)
    if era is Era.MODERN:
        return bridge.created_core(bridge.to_core(made.task, live.public, iso_now()), meta)
    if bridge.RELATED_KEY in made.meta:
        meta[bridge.RELATED_KEY] = Raw(encode_json({"taskId": live.public}))
    return bridge.created_core(bridge.renamed(made.task, live.public), meta)


def _adapted(outgoing: Outgoing, mode: Mode, client: Client, era: Era, fields: Fields) -> Outgoing:
    """The request as the server wants it: a legacy one is asked for a task, a modern one told that it may make one."""
    params = decode_fields(outgoing.params)
    task = params.pop("task", None)
    if era is Era.MODERN:
        if mode is not Mode.PLAIN:
            params = requests.with_meta(params, talk.declaring(requests.read_meta(params)))
    elif mode is Mode.GIVE and client.binding.era is Era.LEGACY and task is not None:
        params["task"] = task
    elif mode is not Mode.PLAIN:
        params["task"] = Raw(encode_json({"ttl": DEFAULT_TTL_MS}))
    return msgspec.structs.replace(outgoing, params=encode_json(params), streamable=False)
