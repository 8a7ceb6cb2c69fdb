"""Streamable HTTP for modern clients (2026-07-28): every POST stands alone, closing its stream cancels it."""

import asyncio
from typing import Final

from msgspec import UNSET, Raw

from polyplex.downstream.callers import caller_of
from polyplex.downstream.calls import run_call
from polyplex.downstream.http_calls import HttpCall
from polyplex.downstream.session import STOPPING, Call, Gateway, Session
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol import envelope, headers, jsonrpc
from polyplex.protocol.jsonrpc import Fields, Message
from polyplex.protocol.revisions import LATEST_MODERN, LEGACY_ONLY_METHODS, LEGACY_REVISIONS, Era
from polyplex.transports.http_server import Request

MAX_METAS: Final = 64
MAX_META_BYTES: Final = 2048


class ModernHttp:
    """Stateless requests: each has a `Session` of its own, which ends with it."""

    def __init__(self, gateway: Gateway, active: set[HttpCall]) -> None:
        self._gateway = gateway
        self._active = active
        self._loop = asyncio.get_running_loop()
        self._revisions: dict[bytes, str] = {}

    def close(self) -> None:
        """Cancel what is under way, with an answer that says so."""
        for http_call in list(self._active):
            if http_call.call is not None:
                http_call.call.stop(STOPPING)

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
            fields = self._check(request, message, method)
        except RpcError as error:
            _error(request, 404 if error.code == jsonrpc.METHOD_NOT_FOUND else 400, identifier, error)
            return
        except RemoteProtocolError as error:
            _error(request, 400, identifier, RpcError(error.code, str(error)))
            return
        session = Session(Era.MODERN, LATEST_MODERN, http=True, identifier="modern", caller=caller_of(request))
        http_call = HttpCall(request, self._active, self._loop, session)
        call = Call(session, message, http_call.send, request.headers)
        call.fields = fields
        call.streamable = True
        request.on_disconnect = call.stop
        http_call.call = call
        run_call(self._gateway, call, http_call.answer, http_call.unanswered, self._loop)

    def _check(self, request: Request, message: Message, method: str) -> Fields:
        """Envelope and headers; gives the params. Raises `RpcError`, all of which mean HTTP 400 or 404."""
        fields = jsonrpc.decode_params(b"{}" if message.params is UNSET else message.params)
        raw = bytes(fields.get("_meta", Raw(b"{}")))
        revision = self._revisions.get(raw)
        if revision is None:
            revision = self._read_meta(request, method, fields, raw)
        headers.check_request(request.headers, method, fields, revision)
        if method in LEGACY_ONLY_METHODS:
            raise RpcError(jsonrpc.METHOD_NOT_FOUND, f"{method} does not exist in revision {LATEST_MODERN}")
        return fields

    def _read_meta(self, request: Request, method: str, fields: Fields, raw: bytes) -> str:
        """The revision that `_meta` names. A client sends the same `_meta` over and over: the usual ones are kept."""
        meta = jsonrpc.decode_fields(raw)
        text = meta.get(envelope.REVISION_KEY)
        if text is None:  # the header is all that says what the client speaks
            envelope.check_revision(request.headers.get(headers.REVISION, LATEST_MODERN))
        headers.check_request(request.headers, method, fields, None if text is None else jsonrpc.decode_text(text))
        revision = envelope.read_envelope(meta).revision
        if len(raw) <= MAX_META_BYTES:
            if len(self._revisions) >= MAX_METAS:
                self._revisions.clear()
            self._revisions[raw] = revision
        return revision


def _is_modern(body: bytes) -> bool:
    try:
        params = jsonrpc.decode(body).params
    except RemoteProtocolError:
        return False
    return params is not UNSET and envelope.is_modern(params)


def _error(request: Request, status: int, identifier: bytes, error: RpcError) -> None:
    body = jsonrpc.error_response(identifier, jsonrpc.error_object(error.code, str(error), error.data))
    request.respond(status, body)
