"""The straight line: a client's request through to one server and back. Read this file to know where everything is."""

import asyncio
import logging

import msgspec
from msgspec import UNSET, Raw

from polyplex.downstream.session import Call
from polyplex.errors import (
    PayloadError,
    RemoteProtocolError,
    RpcError,
    UpstreamBusy,
    UpstreamError,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
)
from polyplex.gateway import rounds
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.usage import came
from polyplex.mux.entries import Naming
from polyplex.mux.rewrite import rewrite_result
from polyplex.mux.router import Routes, Target
from polyplex.protocol import headers as mirrored
from polyplex.protocol.bridge import downgrade, errors, requests, results
from polyplex.protocol.bridge.tasks import needs_extension
from polyplex.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    URL_ELICITATION_REQUIRED,
    Fields,
    decode_error,
    decode_fields,
    decode_params,
    decode_text,
    encode_json,
    error_object,
)
from polyplex.protocol.revisions import INPUT_METHODS, LEGACY, MODERN, R2025_06_18, Era
from polyplex.transports.exchange import Reply
from polyplex.upstreams.connection import request_id
from polyplex.upstreams.upstream import Outgoing, Upstream

log = logging.getLogger("polyplex.gateway")


async def answer(core: Core, call: Call, client: Client) -> Reply:
    """Carry one routed request, and turn what goes wrong on the way into an answer."""
    try:
        fields = call.fields or decode_params(call.params or b"{}")
        builtin = core.builtins.named(call.method, fields)
        if builtin is not None:
            return core.usage.counted_builtin(call, builtin, await core.builtins.answer(builtin, call, client, fields))
        if "requestState" in fields and client.binding.era is MODERN:
            back = await core.returns.back(call, client, fields)
            if isinstance(back, Reply):
                return back
            fields = back
        target = known_target(core, call, client, fields) or await late_target(core, call, client, fields)
        call.server = target.server
        fields = await core.results.resolved(call, client, target, fields) if core.results.refers(call) else fields
        upstream = client.upstreams.get(target.server) or await core.upstream(client, target.server)
        if call.log_level is not None:
            upstream = await core.told(client, upstream, call.log_level)
        connection = upstream.connection
        if connection is None or not connection.open:
            connection = await upstream.ready()
        peer = connection.peer or upstream.peer
        era = LEGACY if peer is None else peer.era
        tasks = peer is not None and peer.tasks
        done = await core.tasks.carried(call, client, upstream, target, fields) if tasks or "task" in fields else None
        if done is not None:
            return done
        outgoing = prepare(call, client, upstream, target, fields, era, streams=not core.results.off)
        exchange = upstream.send(connection, outgoing, call)
        try:
            reply = await exchange
        except (UpstreamError, asyncio.CancelledError) as error:
            reply = await upstream.recover(error, connection, exchange, outgoing, call)
        if reply.stream is not None:
            reply = await core.results.received(call, client, target, upstream, outgoing, reply)
        if era is MODERN and rounds.needs_input(reply.result):
            reply = await asked(core, call, client, upstream, outgoing, reply)
        if reply.result is None:
            return await without_result(core, call, client, upstream, target, reply, fields)
        modern = client.binding.era is era is MODERN
        result = core.tasks.passed(call, client, upstream, reply.result) if tasks and modern else reply.result
        result = finish(call, result, era, upstream.naming)
        size, small = came(reply, result), not core.results.concerns(reply, result)
        reply.result = result if small else await core.results.bounded(call, client, target, reply, result)
        return core.usage.counted(call, target, reply, size)
    except (RpcError, RemoteProtocolError, UpstreamError, PayloadError) as error:
        return answer_failure(call, error)


async def asked(core: Core, call: Call, client: Client, upstream: Upstream, outgoing: Outgoing, reply: Reply) -> Reply:
    """A modern server wants input: a legacy client is asked for it now, a modern one is told."""
    if client.binding.era is LEGACY:
        return await rounds.answered(call, client, upstream, outgoing, reply)
    return Reply(result=core.returns.given(call, client, reply.result or b"{}"))


async def without_result(
    core: Core, call: Call, client: Client, upstream: Upstream, target: Target, reply: Reply, fields: Fields
) -> Reply:
    """A result that streams on to the client, or a server's error as the client's revision has it.

    Where a page must be visited first, a modern client is asked to, and a client without that error is told in text.
    Where a task must be made, a legacy client waits for it.
    """
    if reply.stream is not None:
        return core.usage.counted(call, target, reply)
    era = LEGACY if upstream.peer is None else upstream.peer.era
    error = reply.error or error_object(INTERNAL_ERROR, "no answer")
    if client.binding.era is MODERN and era is LEGACY and b"-32042" in error:
        decoded = decode_error(error)
        if decoded.code == URL_ELICITATION_REQUIRED and call.method in INPUT_METHODS:
            return core.returns.visit_first(call, client, None if decoded.data is UNSET else bytes(decoded.data))
    if era is MODERN and client.binding.era is LEGACY and call.method == "tools/call" and needs_extension(error):
        return await core.tasks.rescue(call, client, upstream, target, fields)
    return refused(call, error, era, fields)


def refused(call: Call, error: bytes, era: Era, fields: Fields) -> Reply:
    """A server's error as the client's revision has it."""
    revision = call.session.revision
    visit = errors.wants_url(error, revision) if call.method == "tools/call" else None
    if visit is not None:
        return Reply(result=results.tool_failure(visit, call.session.era))
    return Reply(error=errors.error_for(call.method, error, era, revision, _uri(fields)))


def known_target(core: Core, call: Call, client: Client, fields: Fields) -> Target | None:
    """Where a request goes; None where that is not known."""
    try:
        return resolve(core.view(client).routes, call, fields)
    except RpcError:
        return None


async def late_target(core: Core, call: Call, client: Client, fields: Fields) -> Target:
    """Where a request goes for which a server that is still starting may be meant. Raises `RpcError`."""
    await core.pool.server_of(_subject(call.method, fields), client.binding)
    return resolve(core.view(client).routes, call, fields)


def _subject(method: str, fields: Fields) -> str:
    """The name or URI that a request is about."""
    if method == "completion/complete":
        fields = decode_fields(fields.get("ref", Raw(b"{}")))
    raw = fields.get("name") or fields.get("uri")
    return "" if raw is None else decode_text(raw)


def resolve(routes: Routes, call: Call, fields: Fields) -> Target:
    """Where a request goes. Raises `RpcError` for a name or URI that leads nowhere, or to two servers."""
    method = call.method
    if method == "tools/call":
        target = routes.tool(_member(fields, "name"))
        if call.headers is not None and target.entry is not None and target.entry.headers:
            arguments = fields.get("arguments")
            mirrored.check_params(call.headers, target.entry.headers, None if arguments is None else bytes(arguments))
        return target
    if method == "prompts/get":
        return routes.prompt(_member(fields, "name"))
    if method == "resources/read":
        return read_target(routes, call, _member(fields, "uri"))
    reference = decode_fields(fields.get("ref", Raw(b"null")))
    if _member(reference, "type") == "ref/prompt":
        return routes.prompt(_member(reference, "name"))
    return routes.template(_member(reference, "uri"))


def read_target(routes: Routes, call: Call, uri: str) -> Target:
    """The server behind a resource URI; the error for none has the code and data of the client's era."""
    code = INVALID_PARAMS if call.session.era is MODERN else RESOURCE_NOT_FOUND
    try:
        return routes.resource(uri, code)
    except RpcError as error:
        raise RpcError(error.code, error.message, encode_json({"uri": uri})) from None


def _member(fields: Fields, name: str) -> str:
    raw = fields.get(name)
    if raw is None:
        raise RpcError(INVALID_PARAMS, f"params.{name} is missing")
    return decode_text(raw)


def _uri(fields: Fields) -> str | None:
    raw = fields.get("uri")
    return None if raw is None else decode_text(raw)


def prepare(
    call: Call, client: Client, upstream: Upstream, target: Target, fields: Fields, era: Era, *, streams: bool = False
) -> Outgoing:
    """The request with the server's own name, a progress token of ours, and the `_meta` and headers of its era.

    With `streams`, a large result may come as a stream even where it cannot go on as one.
    """
    identifier = request_id()
    entry = target.entry
    bare = entry is not None and entry.key == target.local and call.method != "completion/complete"
    renamed = fields if bare else localise(call.method, fields, target.local)
    if call.method == "completion/complete" and upstream.peer is not None:
        renamed = requests.completion_for(renamed, upstream.peer.revision)
    same = era is client.binding.era
    plain = same and b'"progressToken"' not in (call.params or b"")
    meta = {} if plain and renamed is fields else requests.read_meta(fields)
    token = meta.get("progressToken")
    if token is None and renamed is fields and (same or (era is LEGACY and not meta)):
        params = call.params or b"{}"
    else:
        revision = "" if upstream.peer is None else upstream.peer.revision
        changed = requests.meta_for(meta, client.binding.era, era, revision, client.facts)
        if era is LEGACY:
            renamed = requests.without_retry(renamed)
        if token is not None:
            changed = changed | {"progressToken": Raw(identifier)}
        params = encode_json(requests.with_meta(renamed, changed))
    headers = None
    if era is MODERN and upstream.config.kind != "stdio":
        named = mirrored.NAMED_METHODS.get(call.method)
        spec = target.entry.headers if target.entry is not None else ()
        headers = requests.mirrored_headers(call.method, target.local if named else None, spec, fields.get("arguments"))
    passes = call.streamable and same and call.revision >= R2025_06_18 and not upstream.naming.prefix
    raw = None if token is None else bytes(token)
    return Outgoing(call.method, params, identifier, raw, headers, passes or streams, passes)


def localise(method: str, fields: Fields, local: str) -> Fields:
    """The params with the server's own name or URI; the same object where that is what they have already."""
    if method == "completion/complete":
        reference = decode_fields(fields["ref"])
        key = "name" if "name" in reference else "uri"
        if decode_text(reference[key]) == local:
            return fields
        return fields | {"ref": Raw(encode_json(reference | {key: Raw(encode_json(local))}))}
    key = "uri" if method == "resources/read" else "name"
    return fields if decode_text(fields[key]) == local else fields | {key: Raw(encode_json(local))}


def finish(call: Call, result: bytes, era: Era, naming: Naming, of: str | None = None) -> bytes:
    """A server's result in the shape of the client's era and revision, with public URIs.

    `of` is the method whose result it is, where the call only fetches it. Raises `UpstreamLost` for what is none.
    """
    session, method = call.session, of or call.method
    try:
        result = rewrite_result(method, results.result_for(method, result, era, session.era), naming)
        if downgrade.applies(era, session.era, session.revision):
            return downgrade.result_for(method, result, session.revision)
        return result
    except (RemoteProtocolError, msgspec.DecodeError, RecursionError) as error:
        raise UpstreamLost(naming.server, f"its result for {method} is not usable: {error}") from None


def answer_failure(call: Call, error: Exception) -> Reply:
    """What a client is told. A failing server becomes a tool result, so that the model can act on it."""
    if isinstance(error, RpcError):
        code, session = error.code, call.session
        if session.era is LEGACY:  # a server's own, where it was asked on the client's behalf
            code = errors.code_for(call.method, code, LEGACY, session.revision)
        return Reply.failure(code, error.message, error.data)
    if isinstance(error, RemoteProtocolError):
        return Reply.failure(error.code, str(error))
    if isinstance(error, PayloadError):
        if call.method == "tools/call":
            return Reply(result=results.tool_failure(str(error), call.session.era))
        return Reply.failure(INVALID_PARAMS, str(error))
    if not isinstance(error, UpstreamError):
        raise error
    text = explain(error)
    log.warning("%s of %r: %s", call.method, error.server, error.message)
    if call.method == "tools/call":
        return Reply(result=results.tool_failure(text, call.session.era))
    return Reply.failure(INTERNAL_ERROR, text, encode_json({"server": error.server}))


def explain(error: UpstreamError) -> str:
    """Which server, what happened, and what will happen next."""
    server = f"The server {error.server!r}"
    if isinstance(error, UpstreamTimeout):
        return (
            f"{server} did not answer in time: {error.message}. The request was cancelled; whether it took effect is "
            "unknown. Try again, or raise timeoutSeconds for this server."
        )
    if isinstance(error, UpstreamLost):
        return (
            f"{server} failed during the request: {error.message}. Whether it took effect is unknown, so check before "
            "repeating it; polyplex reconnects by itself."
        )
    if isinstance(error, UpstreamRefused):
        return f"{server} refused the request: {error.message}. Sending it again will not help."
    if isinstance(error, UpstreamBusy):
        return f"{server} does not take the request now: {error.message}. Nothing ran; try again later."
    return f"{server} is not available: {error.message}. Nothing was sent; polyplex keeps trying to connect."
