"""Streamable HTTP for modern clients (2026-07-28): every POST stands alone, closing its stream cancels it."""

import asyncio

from msgspec import UNSET, Raw

from polyplex.downstream.calls import run_call
from polyplex.downstream.http_calls import HttpCall
from polyplex.downstream.session import Call, Gateway, Session
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol import envelope, headers, jsonrpc
from polyplex.protocol.jsonrpc import Fields, Message
from polyplex.protocol.revisions import LATEST_MODERN, LEGACY_ONLY_METHODS, LEGACY_REVISIONS, Era
from polyplex.transports.exchange import Reply
from polyplex.transports.http_server import Request


class ModernHttp:
    """Stateless requests: each has a `Session` of its own, which ends with it."""

    def __init__(self, gateway: Gateway, active: set[HttpCall]) -> None:
        self._gateway = gateway
        self._active = active
        self._loop = asyncio.get_running_loop()
        self._calls: dict[bytes, Call] = {}
        self._count = 0

    def close(self) -> None:
        """Cancel what is under way."""
        for call in list(self._calls.values()):
            call.stop()

    def claims(self, request: Request, revision: str | None) -> bool:
        """True for requests of the modern era: by their header, or by the envelope in their body."""
        if revision is not None and revision not in LEGACY_REVISIONS:
            return True
        return envelope.is_marked(request.body) and _is_modern(request.body)

    def post(self, request: Request) -> None:
        """One request or notification."""
        try:
            message = jsonrpc.decode(request.body)
        except RemoteProtocolError as error:
            _error(request, 400, error.id, RpcError(error.code, str(error)))
            return
        if message.method is UNSET:
            _error(request, 400, jsonrpc.NULL, RpcError(jsonrpc.INVALID_REQUEST, "clients do not send responses"))
        elif message.id is UNSET:
            request.respond(202)
        else:
            self._request(request, message, message.method)

    def _request(self, request: Request, message: Message, method: str) -> None:
        identifier = bytes(message.id)  # pyright: ignore[reportArgumentType]
        try:
            self._check(request, message, method)
        except RpcError as error:
            _error(request, 404 if error.code == jsonrpc.METHOD_NOT_FOUND else 400, identifier, error)
            return
        except RemoteProtocolError as error:
            _error(request, 400, identifier, RpcError(error.code, str(error)))
            return
        self._count += 1
        session = Session(Era.MODERN, LATEST_MODERN, http=True, identifier="modern")
        http_call = HttpCall(request, self._active, self._loop, session)
        call = Call(session, message, http_call.send, request.headers)
        call.streamable = True
        key = b"%d" % self._count
        self._calls[key] = call

        def answer(call: Call, reply: Reply) -> None:
            self._calls.pop(key, None)
            http_call.answer(call, reply)

        def unanswered(call: Call) -> None:
            self._calls.pop(key, None)
            http_call.unanswered(call)

        request.on_disconnect = call.stop
        run_call(self._gateway, call, answer, unanswered, self._loop)

    def _check(self, request: Request, message: Message, method: str) -> None:
        """Envelope and headers. Raises `RpcError`, all of which mean HTTP 400 or 404."""
        params = b"{}" if message.params is UNSET else bytes(message.params)
        fields: Fields = jsonrpc.decode_fields(params)
        raw = fields.get("_meta", Raw(b"{}"))
        meta = jsonrpc.decode_fields(raw)
        revision = meta.get(envelope.REVISION_KEY)
        headers.check_request(
            request.headers, method, fields, None if revision is None else jsonrpc.decode_text(revision)
        )
        envelope.read_envelope(meta)
        if method in LEGACY_ONLY_METHODS:
            raise RpcError(jsonrpc.METHOD_NOT_FOUND, f"{method} does not exist in revision {LATEST_MODERN}")


def _is_modern(body: bytes) -> bool:
    try:
        params = jsonrpc.decode(body).params
    except RemoteProtocolError:
        return False
    return params is not UNSET and envelope.is_modern(params)


def _error(request: Request, status: int, identifier: bytes, error: RpcError) -> None:
    body = jsonrpc.error_response(identifier, jsonrpc.error_object(error.code, str(error), error.data))
    request.respond(status, body)
