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
from polyplex.protocol.bridge.tasks import RELATED_MARK, with_related
from polyplex.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Fields,
    decode_error,
    decode_fields,
    decode_text,
    encode_json,
    notification,
)
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
_ID: Final = "elicitationId"


class Question(msgspec.Struct):
    """One of the `inputRequests` of a modern server."""

    method: str
    params: Raw = Raw(b"{}")


class _InputRequired(msgspec.Struct):
    resultType: str = "complete"
    inputRequests: dict[str, Question] = {}
    requestState: str | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_InputRequired).decode


def needs_input(result: bytes | None) -> bool:
    """A cheap test for results that are no final answer."""
    return result is not None and _MARK in result


async def answered(call: Call, client: Client, upstream: Upstream, outgoing: Outgoing, reply: Reply) -> Reply:
    """The final reply, after as many rounds as the server wants. Raises `RpcError` where the client cannot answer."""
    visits: list[str] = []
    for _ in range(MAX_ROUNDS):
        wanted = _read(upstream, reply.result or b"{}") if needs_input(reply.result) else None
        if wanted is None or wanted.resultType != "input_required":
            _complete(call, reply, visits)
            return reply
        questions = {key: as_legacy(question) for key, question in wanted.inputRequests.items()}
        responses = await _ask_all(call, client, questions)
        visits += visited(questions, responses)
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


async def _ask_all(call: Call, client: Client, asked: dict[str, Question]) -> Fields:
    for question in asked.values():
        check(client, question)
    asking = [asyncio.get_running_loop().create_task(ask(call, question)) for question in asked.values()]
    try:
        answers = await asyncio.gather(*asking)
    finally:  # where one is refused, the others need no answer any more
        for task in asking:
            task.cancel()
    return dict(zip(asked, map(Raw, answers), strict=True))


def check(client: Client, question: Question) -> None:
    """Raise `RpcError` where the client cannot be asked."""
    capability = ASK_METHODS.get(question.method)
    if capability is None or not client.can(capability):
        needed = capability or question.method
        raise RpcError(INVALID_REQUEST, f"the server needs {needed}, which this client does not support")
    try:
        asks.check(question.method, bytes(question.params), client.capabilities, client.session.revision)
    except RpcError as error:
        raise RpcError(INVALID_REQUEST, error.message) from None


async def ask(call: Call, question: Question, task: str | None = None) -> bytes:
    """One answer as raw JSON; `task` is the id of the task that the question belongs to, for the client.

    A refusal counts as a cancelled form; without an answer to the rest nothing can go on, so it raises `RpcError`.
    """
    session = call.session
    params, restore = asks.ask_for(question.method, bytes(question.params), session.revision)
    if task is not None:
        params = encode_json(with_related(decode_fields(params or b"{}"), task))
    reply = await session.ask(question.method, params, call.send)
    if reply.result is not None:
        result = bytes(reply.result) if restore is None else restore(bytes(reply.result))
        return encode_json(with_related(decode_fields(result), None)) if RELATED_MARK in result else result
    if question.method == "elicitation/create":
        return _CANCELLED
    error = decode_error(reply.error or b"{}")
    raise RpcError(error.code, f"the client refused {question.method}: {error.message}")


def as_legacy(question: Question) -> Question:
    """Legacy clients know a question about a URL by an id, which modern servers do not give."""
    if question.method != "elicitation/create" or b'"url"' not in bytes(question.params):
        return question
    fields = decode_fields(question.params)
    if fields.get("mode") != Raw(b'"url"') or _ID in fields:
        return question
    return Question(question.method, Raw(encode_json(fields | {_ID: Raw(encode_json(str(uuid.uuid4())))})))


def visited(questions: dict[str, Question], responses: Fields) -> list[str]:
    """The ids of the URLs that the user was willing to visit."""
    return [
        decode_text(fields[_ID])
        for key, question in questions.items()
        if question.method == "elicitation/create" and _ID in (fields := decode_fields(question.params))
        if decode_fields(responses[key]).get("action") == Raw(b'"accept"')
    ]


def _complete(call: Call, reply: Reply, visits: list[str]) -> None:
    """The server took what the user did at its URLs for done: legacy clients wait for a notice that says so."""
    if reply.result is not None:
        complete(call, visits)


def complete(call: Call, visits: list[str]) -> None:
    """Tell a legacy client that nobody waits any more for what its user did at these URLs."""
    for visit in visits:
        call.send(notification("notifications/elicitation/complete", encode_json({_ID: visit})))


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
    changed = {"params": encode_json(fields), "identifier": identifier, "streamable": False, "passes": False}
    return msgspec.structs.replace(outgoing, **changed)
