"""Streamable HTTP for legacy clients (2025-03-26 to 2025-11-25): sessions, POST, the general stream, DELETE."""

import asyncio
import logging

from msgspec import UNSET

from polyplex.downstream.calls import Batch, run_call
from polyplex.downstream.event_log import GENERAL
from polyplex.downstream.http_calls import RETRY_MS, HttpCall
from polyplex.downstream.session import CLIENT_ENDED, STOPPING, Call, Gateway, Session
from polyplex.errors import RemoteProtocolError
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import (
    ASSUMED_WITHOUT_HEADER,
    LATEST_LEGACY,
    R2025_11_25,
    Era,
    allows_batches,
    has_resumption,
)
from polyplex.protocol.sse import COMMENT, encode_event
from polyplex.transports.exchange import Reply
from polyplex.transports.http_server import Request, ResponseWriter

log = logging.getLogger("polyplex.downstream")
MAX_SESSIONS = 10_000


class LegacyHttp:
    """The sessions of legacy clients. `active` collects the calls under way."""

    def __init__(self, gateway: Gateway, active: set[HttpCall], idle_seconds: float) -> None:
        self._gateway = gateway
        self._active = active
        self._idle_seconds = idle_seconds
        self._loop = asyncio.get_running_loop()
        self._sessions: dict[str, Session] = {}
        self._streams: dict[str, ResponseWriter] = {}

    # -- life
    def tick(self, now: float) -> None:
        """Keep streams alive and end sessions that nobody uses."""
        for session in list(self._sessions.values()):
            stream = self._streams.get(session.id)
            if stream is not None:
                stream.write(COMMENT)
            if stream is not None or session.calls:
                session.last_used = now
            elif now - session.last_used > self._idle_seconds:
                self._end(session, "the session was idle")

    @property
    def busy(self) -> bool:
        """True while calls are under way."""
        return any(session.calls for session in self._sessions.values())

    def close(self) -> None:
        """End all sessions."""
        for session in list(self._sessions.values()):
            self._end(session, STOPPING)

    def _end(self, session: Session, reason: str) -> None:
        self._sessions.pop(session.id, None)
        stream = self._streams.pop(session.id, None)
        if stream is not None:
            stream.end()
        session.close(reason)
        self._gateway.closed(session)

    def knows(self, identifier: str | None) -> bool:
        """True for the id of a session that is open."""
        return identifier in self._sessions

    def _find(self, request: Request) -> Session | None:
        """The session that a request names; answers the request itself where there is none."""
        identifier = request.headers.get("mcp-session-id")
        if identifier is None:
            _error(request, 400, "the header Mcp-Session-Id is missing; start with initialize")
            return None
        session = self._sessions.get(identifier)
        if session is None:
            _error(request, 404, "this session is not known or has ended; start anew with initialize")
            return None
        session.last_used = request.connection.since
        return session

    # -- POST
    def post(self, request: Request) -> None:
        """One message, or in 2025-03-26 a batch."""
        try:
            decoded = jsonrpc.decode_frame(request.body)
        except RemoteProtocolError as error:
            _error(request, 400, str(error), error.code, error.id)
            return
        if not isinstance(decoded, list) and decoded.method == "initialize" and decoded.id is not UNSET:
            self._initialize(request, decoded)
            return
        session = self._find(request)
        if session is None:
            return
        if isinstance(decoded, list):
            self._batch(request, session, decoded)
        elif decoded.method is not UNSET and decoded.id is not UNSET:
            self._call(request, session, decoded)
        elif self._other(session, decoded, request):
            request.respond(202)

    def _initialize(self, request: Request, message: Message) -> None:
        if len(self._sessions) >= MAX_SESSIONS:
            _error(request, 503, f"too many sessions; at most {MAX_SESSIONS}")
            return
        session = Session(Era.LEGACY, LATEST_LEGACY, http=True)
        header = b"Mcp-Session-Id: %b\r\n" % session.id.encode()
        http_call = HttpCall(request, self._active, self._loop, session, header)
        http_call.call = call = Call(session, message, http_call.send)

        def answer(call: Call, reply: Reply) -> None:
            if reply.result is None:
                self._gateway.closed(session)
            else:
                session.last_used = request.connection.since
                self._sessions[session.id] = session
            http_call.answer(call, reply)

        run_call(self._gateway, call, answer, http_call.unanswered, self._loop)

    def _call(self, request: Request, session: Session, message: Message) -> None:
        http_call = HttpCall(request, self._active, self._loop, session)
        call = Call(session, message, http_call.send)
        call.suspend = http_call.suspend
        call.streamable = True
        run_call(self._gateway, call, http_call.answer, http_call.unanswered, self._loop)

    def _other(self, session: Session, message: Message, request: Request | None) -> bool:
        """A notification or a response; False where the request has been answered with an error."""
        if message.method is UNSET:
            session.answered(message)
            return True
        params = None if message.params is UNSET else bytes(message.params)
        try:
            if message.method == "notifications/cancelled":
                session.cancel(params)
            else:
                self._gateway.notified(session, message.method, params)
        except RemoteProtocolError as error:
            if request is not None:
                _error(request, 400, str(error), error.code)
                return False
        return True

    def _batch(self, request: Request, session: Session, parts: list[bytes]) -> None:
        if not allows_batches(request.headers.get("mcp-protocol-version", session.revision)):
            _error(request, 400, f"batches exist in revision {ASSUMED_WITHOUT_HEADER} only")
            return

        def finished(frame: bytes | None) -> None:
            request.respond(202) if frame is None else request.respond(200, frame)

        batch = Batch(len(parts), finished)
        for part in parts:
            try:
                message = jsonrpc.decode(part)
                if message.method == "initialize":
                    raise RemoteProtocolError("initialize must not be part of a batch")
            except RemoteProtocolError as error:
                batch.add(jsonrpc.error_response(error.id, jsonrpc.error_object(error.code, str(error))))
                continue
            if message.method is not UNSET and message.id is not UNSET:
                run_call(
                    self._gateway, Call(session, message, session.send), batch.answer, batch.unanswered, self._loop
                )
            else:
                self._other(session, message, None)
                batch.add(None)

    # -- GET and DELETE
    def get(self, request: Request) -> None:
        """Open the session's general stream; a newer one takes the place of an older."""
        if "text/event-stream" not in request.headers.get("accept", "*/*").replace("*/*", "text/event-stream"):
            _error(request, 406, "this is an event stream: accept text/event-stream")
            return
        session = self._find(request)
        if session is None:
            return
        header = b"Mcp-Session-Id: %b\r\n" % session.id.encode()
        last = request.headers.get("last-event-id")
        missed = None if last is None or not has_resumption(session.revision) else session.event_log().after(last)
        writer = request.respond_events(header)
        for identifier, frame in missed[1] if missed is not None else []:
            writer.write(encode_event(frame, id=identifier))
        if missed is not None and missed[0] != GENERAL:
            self._resume(session, missed[0], writer)
        else:
            self._general(request, session, writer)

    def _resume(self, session: Session, stream: str, writer: ResponseWriter) -> None:
        """The rest of a call's stream: more to come while the call is under way, else all has been said."""
        http_call: HttpCall | None = session.resumable.get(stream)
        if http_call is None:
            writer.end()
        else:
            http_call.resume(writer)

    def _general(self, request: Request, session: Session, writer: ResponseWriter) -> None:
        older = self._streams.pop(session.id, None)
        if older is not None:
            older.end()
        self._streams[session.id] = writer
        if has_resumption(session.revision) and session.revision >= R2025_11_25:
            writer.write(encode_event(b"", event=None, id=session.event_log().latest(GENERAL), retry=RETRY_MS))
        else:
            writer.write(COMMENT)

        def gone() -> None:
            if self._streams.get(session.id) is writer:
                del self._streams[session.id]
                session.attach(None)

        request.on_disconnect = gone

        def send(frame: bytes) -> None:
            line = jsonrpc.one_line(frame)
            identifier = session.event_log().append(GENERAL, line) if has_resumption(session.revision) else None
            writer.write(encode_event(line, id=identifier))

        session.attach(send)

    def delete(self, request: Request) -> None:
        """End a session."""
        session = self._find(request)
        if session is not None:
            self._end(session, CLIENT_ENDED)
            request.respond(200)


def _error(
    request: Request, status: int, message: str, code: int = jsonrpc.INVALID_REQUEST, identifier: bytes = jsonrpc.NULL
) -> None:
    request.respond(status, jsonrpc.error_response(identifier, jsonrpc.error_object(code, message)))
