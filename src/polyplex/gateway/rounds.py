"""A modern server that needs input, and a legacy client that is asked for it (2026-07-28, "Multi Round-Trip Requests").

The server's questions become requests on the call's own stream; the original request is sent again with the answers.
"""

import asyncio
import logging
import uuid
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RpcError, UpstreamError
from polyplex.gateway.client import Client
from polyplex.protocol.bridge import asks
from polyplex.protocol.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, Fields, decode_error, decode_fields, encode_json
from polyplex.protocol.revisions import ASK_METHODS
from polyplex.transports.exchange import Reply
from polyplex.upstreams.connection import request_id
from polyplex.upstreams.upstream import Outgoing, Upstream

log = logging.getLogger("polyplex.gateway")
MAX_ROUNDS: Final = 10
MAX_QUESTIONS: Final = 32
_MARK: Final = b'"input_required"'
MARKS: Final = (_MARK, b'"inputRequests"', b'"requestState"')
_CANCELLED: Final = b'{"action":"cancel"}'


class _Question(msgspec.Struct):
    method: str
    params: Raw = Raw(b"{}")


class _InputRequired(msgspec.Struct):
    resultType: str = "complete"
    inputRequests: dict[str, _Question] = {}
    requestState: str | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_InputRequired).decode


def needs_input(result: bytes | None) -> bool:
    """A cheap test for results that are no final answer."""
    return result is not None and _MARK in result


async def answered(call: Call, client: Client, upstream: Upstream, outgoing: Outgoing, reply: Reply) -> Reply:
    """The final reply, after as many rounds as the server wants. Raises `RpcError` where the client cannot answer."""
    for _ in range(MAX_ROUNDS):
        if not needs_input(reply.result):
            return reply
        wanted = _read(upstream, reply.result or b"{}")
        if wanted.resultType != "input_required":
            return reply
        responses = await _ask_all(call, client, wanted.inputRequests)
        outgoing = _again(outgoing, responses, wanted.requestState)
        connection = await upstream.ready()
        exchange = upstream.send(connection, outgoing, call)
        try:
            reply = await exchange
        except (UpstreamError, asyncio.CancelledError) as error:
            reply = await upstream.recover(error, connection, exchange, outgoing, call)
    raise RpcError(INTERNAL_ERROR, f"{upstream.config.name!r} still asks for input after {MAX_ROUNDS} rounds")


def _read(upstream: Upstream, result: bytes) -> _InputRequired:
    try:
        wanted = _decode(result)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RpcError(INTERNAL_ERROR, f"{upstream.config.name!r} asks for input in no usable form: {error}") from None
    if len(wanted.inputRequests) > MAX_QUESTIONS:
        raise RpcError(INTERNAL_ERROR, f"{upstream.config.name!r} asks {len(wanted.inputRequests)} questions at once")
    return wanted


async def _ask_all(call: Call, client: Client, asked: dict[str, _Question]) -> Fields:
    for question in asked.values():
        capability = ASK_METHODS.get(question.method)
        if capability is None or not client.can(capability):
            needed = capability or question.method
            raise RpcError(INVALID_REQUEST, f"the server needs {needed}, which this client does not support")
        try:
            asks.check(question.method, bytes(question.params), client.capabilities, client.session.revision)
        except RpcError as error:
            raise RpcError(INVALID_REQUEST, error.message) from None
    answers = await asyncio.gather(*(_ask(call, question) for question in asked.values()))
    return dict(zip(asked, map(Raw, answers), strict=True))


async def _ask(call: Call, question: _Question) -> bytes:
    """One answer as raw JSON. A refusal counts as a cancelled form; without an answer to the rest nothing can go on."""
    session = call.session
    params, restore = asks.ask_for(question.method, _params(question), session.revision)
    reply = await session.ask(question.method, params, call.send)
    if reply.result is not None:
        return bytes(reply.result) if restore is None else restore(bytes(reply.result))
    if question.method == "elicitation/create":
        return _CANCELLED
    error = decode_error(reply.error or b"{}")
    raise RpcError(error.code, f"the client refused {question.method}: {error.message}")


def _params(question: _Question) -> bytes:
    """Legacy clients know a question about a URL by an id, which modern servers do not give."""
    raw = bytes(question.params)
    if question.method != "elicitation/create" or b'"url"' not in raw:
        return raw
    fields = decode_fields(raw)
    if fields.get("mode") == Raw(b'"url"') and "elicitationId" not in fields:
        return encode_json(fields | {"elicitationId": Raw(encode_json(str(uuid.uuid4())))})
    return raw


def _again(outgoing: Outgoing, responses: Fields, state: str | msgspec.UnsetType) -> Outgoing:
    """The original request with the answers, the state where one was given, and an id of its own."""
    identifier = request_id()
    fields = {key: value for key, value in decode_fields(outgoing.params).items() if key != "requestState"}
    fields["inputResponses"] = Raw(encode_json(responses))
    if state is not msgspec.UNSET:
        fields["requestState"] = Raw(encode_json(state))
    if outgoing.token is not None:
        meta = decode_fields(fields["_meta"]) | {"progressToken": Raw(identifier)}
        fields["_meta"] = Raw(encode_json(meta))
    return msgspec.structs.replace(outgoing, params=encode_json(fields), identifier=identifier)
