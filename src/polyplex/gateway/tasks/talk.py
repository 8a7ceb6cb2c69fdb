"""Requests about tasks to the servers that run them, on behalf of a client's call."""

import asyncio
from typing import Final

from msgspec import UNSET, Raw

from polyplex.downstream.calls import gathered
from polyplex.downstream.session import Call
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError, UpstreamLost
from polyplex.gateway.client import Client
from polyplex.gateway.tasks.live import Live
from polyplex.gateway.tasks.registry import Registry
from polyplex.protocol import envelope
from polyplex.protocol.bridge import errors, requests
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import (
    INVALID_PARAMS,
    Fields,
    decode_error,
    decode_fields,
    decode_params,
    decode_text,
    encode_json,
    error_object,
)
from polyplex.protocol.revisions import Era
from polyplex.transports.exchange import Reply
from polyplex.upstreams.connection import Connection, request_id
from polyplex.upstreams.upstream import Outgoing, Upstream

NO_ANSWER: Final = error_object(-32603, "no answer")


def fields_of(call: Call) -> Fields:
    """The params of a call."""
    return call.fields or decode_params(call.params or b"{}")


def task_id(fields: Fields) -> str:
    """The id that a `tasks/` request is about. Raises `RpcError` -32602 where there is none."""
    raw = fields.get("taskId")
    if raw is None:
        raise RpcError(INVALID_PARAMS, "params.taskId is missing")
    return decode_text(raw)


def era_of(upstream: Upstream) -> Era:
    """The era of a server that has been connected."""
    return Era.LEGACY if upstream.peer is None else upstream.peer.era


def meta_of(call: Call, client: Client, upstream: Upstream) -> Fields:
    """The `_meta` of a request about a task: the client's, in the server's era, with the extension declared."""
    era = era_of(upstream)
    revision = "" if upstream.peer is None else upstream.peer.revision
    given = requests.read_meta(fields_of(call))
    meta = requests.meta_for(given, client.binding.era, era, revision, client.facts)
    return meta if era is Era.LEGACY else declaring(meta)


def declaring(meta: Fields) -> Fields:
    """A modern `_meta` whose capabilities declare the extension."""
    capabilities = bytes(meta.get(envelope.CAPABILITIES_KEY, Raw(b"{}")))
    return meta | {envelope.CAPABILITIES_KEY: Raw(bridge.with_extension(capabilities))}


def prepare(call: Call, client: Client, upstream: Upstream, method: str, members: Fields) -> Outgoing:
    """A request about a task; `members` are its params without `_meta`."""
    identifier = request_id()
    meta = meta_of(call, client, upstream)
    token = meta.get("progressToken")
    if token is not None:
        meta["progressToken"] = Raw(identifier)
    headers = None
    if era_of(upstream) is Era.MODERN and upstream.config.kind != "stdio":
        name = decode_text(members["taskId"]) if "taskId" in members else None
        headers = requests.mirrored_headers(method, name, (), None)
    params = encode_json(requests.with_meta(members, meta))
    return Outgoing(method, params, identifier, None if token is None else bytes(token), headers)


async def carry(upstream: Upstream, outgoing: Outgoing, call: Call | None = None) -> Reply:
    """Send a request and await its answer. Raises `UpstreamError`.

    `call` is the one in which the server may ask; requests about tasks are none, and must not look like one to a
    server whose stream does not say which call a question belongs to.
    """
    connection = await upstream.ready()
    exchange = upstream.send(connection, outgoing, call)
    try:
        reply = await exchange
    except (UpstreamError, asyncio.CancelledError) as error:
        reply = await upstream.recover(error, connection, exchange, outgoing, call)
    return await gathered(reply)


async def ask(call: Call, client: Client, upstream: Upstream, method: str, local: str, **members: Raw) -> Fields:
    """The members of the answer to a request about a task. Raises `RpcError` or `UpstreamError`."""
    named: Fields = {"taskId": Raw(encode_json(local)), **members}
    reply = await carry(upstream, prepare(call, client, upstream, method, named))
    return answer_of(reply, upstream, client, method)


async def get(registry: Registry, call: Call, client: Client, live: Live) -> Fields:
    """A task as its server sees it, noted; one that it does not know is forgotten. Raises as `ask` does."""
    try:
        task = await ask(call, client, live.upstream, "tasks/get", live.local)
    except RpcError as error:
        if error.code == INVALID_PARAMS:
            registry.forget(live)
        raise
    return noted(registry, live, task, "tasks/get")


def noted(registry: Registry, live: Live, task: Fields, method: str) -> Fields:
    """A task that `method` gave, once noted. Raises `UpstreamLost` where it has no status."""
    try:
        bridge.status(task)
    except RemoteProtocolError as error:
        raise unusable(live.upstream, method, error) from None
    registry.note(live, task)
    return task


def answer_of(reply: Reply, upstream: Upstream, client: Client, method: str) -> Fields:
    """The members of a result. Raises `RpcError` for an error, with a code of the client's era, and `UpstreamLost`."""
    if reply.result is None:
        raise rpc_error(reply, upstream, client, method)
    try:
        return decode_fields(reply.result)
    except RemoteProtocolError as error:
        raise unusable(upstream, method, error) from None


def error_of(reply: Reply, upstream: Upstream, client: Client, method: str) -> bytes:
    """A server's error with a code of the client's revision."""
    return errors.error_for(method, reply.error or NO_ANSWER, era_of(upstream), client.session.revision)


def rpc_error(reply: Reply, upstream: Upstream, client: Client, method: str) -> RpcError:
    """The same, to be raised."""
    decoded = decode_error(error_of(reply, upstream, client, method))
    return RpcError(decoded.code, decoded.message, None if decoded.data is UNSET else bytes(decoded.data))


def unusable(upstream: Upstream, method: str, error: Exception) -> UpstreamLost:
    """The server answers what no revision allows."""
    return UpstreamLost(upstream.config.name, f"its answer to {method} is not usable: {error}")


async def result_once(
    upstream: Upstream, outgoing: Outgoing, context: object, seconds: float
) -> tuple[Connection, Reply]:
    """The answer to `tasks/result`, which blocks until the task is over; `seconds` 0 for without limit."""
    connection = await upstream.ready()
    exchange = connection.start(
        outgoing.method,
        outgoing.params,
        timeout=seconds,
        context=context,
        identifier=outgoing.identifier,
        token=outgoing.token,
    )
    try:
        return connection, await gathered(await exchange)
    except asyncio.CancelledError:
        connection.cancel(exchange, "the client no longer waits")
        raise
