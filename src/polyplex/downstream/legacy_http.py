"""Streamable HTTP for legacy clients (2025-03-26 to 2025-11-25): sessions, POST, the general stream, DELETE."""

import asyncio
from collections import Counter
from functools import partial
from typing import Final

from msgspec import UNSET

from polyplex.downstream.callers import caller_of
from polyplex.downstream.calls import Batch, run_call
from polyplex.downstream.event_log import EventLogs
from polyplex.downstream.http_calls import HttpCall
from polyplex.downstream.logged_stream import LoggedStream
from polyplex.downstream.session import CLIENT_ENDED, STOPPING, Call, Gateway, Session
from polyplex.downstream.session_table import SessionTable
from polyplex.errors import RemoteProtocolError
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import (
    ASSUMED_WITHOUT_HEADER,
    LATEST_LEGACY,
    Era,
    allows_batches,
    has_resumption,
)
from polyplex.protocol.sse import COMMENT, encode_event
from polyplex.transports.background import Background
from polyplex.transports.exchange import Reply
from polyplex.transports.http_server import Request, ResponseWriter

MAX_SESSIONS: Final = 10_000
IDLE: Final = "the session was idle"
ROTATE: Final = "mcp-session-rotate"
_WITH_ID: Final = b'{"jsonrpc":"2.0","id":'


class LegacyHttp:
    """The sessions of legacy clients. `active` collects the calls under way, `logs` what was sent on their streams."""

    def __init__(self, gateway: Gateway, active: set[HttpCall], idle_seconds: float, logs: EventLogs) -> None:
        self._gateway = gateway
        self._active = active
        self._idle_seconds = idle_seconds
        self._logs = logs
        self._loop = asyncio.get_running_loop()
        self._table = SessionTable()
        self._sessions = self._table.by_id
        self._streams: dict[str, ResponseWriter | LoggedStream] = {}
        self._resuming = Background()

    # -- life
    def tick(self, now: float) -> None:
        """Keep streams alive, and end sessions that nobody uses."""
        for stream in self._streams.values():
            writer = stream.writer if isinstance(stream, LoggedStream) else stream
            if writer is not None:
                writer.write(COMMENT)
        deserted = Counter(call.session for call in self._active if not call.connected)
        for session in list(self._table.sessions.values()):
            if session.id in self._streams or len(session.calls) > deserted[session]:
                session.last_used = now
            elif now - session.last_used > self._idle_seconds:
                self._end(session, IDLE)
        self._table.tick(now)
        self._logs.tick(now)

    @property
    def busy(self) -> bool:
        """True while calls are under way."""
        return any(session.calls for session in self._table.sessions.values())

    async def close(self) -> None:
        """End all sessions."""
        for session in list(self._table.sessions.values()):
            self._end(session, STOPPING)
        self._resuming.cancel()
        await self._resuming.finish()
        await self._logs.close()

    def _end(self, session: Session, reason: str) -> None:
        self._table.remove(session)
        session.close(reason)
        self._leave(session)
        self._gateway.closed(session)

    def _leave(self, session: Session) -> None:
        """End the connection of the general stream."""
        stream = self._streams.pop(session.id, None)
        if isinstance(stream, LoggedStream):
            stream.close()
        elif stream is not None:
            stream.end()

    def knows(self, identifier: str | None) -> bool:
        """True for the id of a session that is open."""
        return identifier in self._sessions

    def _find(self, request: Request) -> Session | None:
        """The session that a request names; answers the request itself where there is none."""
        identifier = request.headers.get("mcp-session-id")
        if identifier is None:
            _error(request, 400, "the header Mcp-Session-Id is missing; start with initialize")
            return None
        now = request.connection.since
        session = self._table.find(identifier, caller_of(request), now)
        if session is None:
            _error(request, 404, "this session is not known or has ended; start anew with initialize")
            return None
        session.last_used = now
        return session

    def _rotated(self, request: Request) -> bytes:
        """The header with a new session id for a client that asks for one; empty for all others."""
        if request.headers.get(ROTATE) != "1":
            return b""
        successor = self._table.rotate(request.headers["mcp-session-id"], request.connection.since)
        return b"" if successor is None else _session_header(successor)

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
            request.respond(202, extra=self._rotated(request))

    def _initialize(self, request: Request, message: Message) -> None:
        if len(self._table) >= MAX_SESSIONS:
            _error(request, 503, f"too many sessions; at most {MAX_SESSIONS}")
            return
        session = Session(Era.LEGACY, LATEST_LEGACY, http=True, caller=caller_of(request), logs=self._logs)
        http_call = HttpCall(request, self._active, self._loop, session, _session_header(session.id))
        http_call.whole = True
        http_call.call = call = Call(session, message, http_call.send)

        def answer(call: Call, reply: Reply) -> None:
            if reply.result is None:
                self._gateway.closed(session)
            else:
                session.last_used = request.connection.since
                self._table.add(session)
            http_call.answer(call, reply)

        run_call(self._gateway, call, answer, http_call.unanswered, self._loop)

    def _call(self, request: Request, session: Session, message: Message) -> None:
        http_call = HttpCall(request, self._active, self._loop, session, self._rotated(request))
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
        rotated = self._rotated(request)

        def finished(frame: bytes | None) -> None:
            request.respond(202 if frame is None else 200, frame or b"", extra=rotated)

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
        last = request.headers.get("last-event-id")
        if last is None or not has_resumption(session.revision):
            self._general(request, session)
        else:
            self._resuming.start(self._resume(request, session, last))

    async def _resume(self, request: Request, session: Session, last: str) -> None:
        """Take up the stream of the event `last`; an id of another session says nothing and opens the general one."""
        log = session.event_log()
        name = await log.stream_of(last)
        if session.closed:
            _error(request, 404, "this session has ended; start anew with initialize")
        elif name is None and log.is_own(last):
            _error(request, 400, "nothing of the stream of this Last-Event-ID is kept any more")
        elif name is None:
            self._general(request, session)
        elif name == log.general:
            self._general(request, session, last.encode())
        else:
            self._take_up(request, session, name, last.encode())

    def _take_up(self, request: Request, session: Session, name: str, last: bytes) -> None:
        """The rest of a call's stream: more to come while the call is under way, else all has been said."""
        log, stream = session.event_log(), session.resumable.get(name)
        over = stream is None
        if stream is None:
            if last == log.latest(name):  # some clients would ask again for ever, as for a call that they cancelled
                _error(request, 400, "all of the stream of this Last-Event-ID has been sent")
                return
            stream = LoggedStream(log, name)
        writer = request.respond_events(_session_header(_own_id(request)))
        stream.take_up(request, writer, last)
        stream.prime(session.revision, position=last)  # some clients remember no id from before this connection
        if over:
            stream.end()

    def _general(self, request: Request, session: Session, last: bytes | None = None) -> None:
        self._leave(session)
        writer = request.respond_events(_session_header(_own_id(request)))
        if has_resumption(session.revision):
            self._logged(request, session, writer, last)
        else:
            writer.write(COMMENT)
            self._streams[session.id] = writer
            request.on_disconnect = partial(self._gone, session, writer)
            session.attach(lambda frame: writer.write(encode_event(jsonrpc.one_line(frame))))

    def _logged(self, request: Request, session: Session, writer: ResponseWriter, last: bytes | None) -> None:
        """A general stream that can be taken up again, or is: from the event `last`."""
        log = session.event_log()
        stream = self._streams[session.id] = LoggedStream(log, log.general)
        if last is None:
            stream.carry(writer)
            stream.prime(session.revision)
        else:
            stream.take_up(request, writer, last, partial(stream.prime, session.revision))
        writer.write(COMMENT)
        wake = request.on_disconnect

        def gone() -> None:
            if wake is not None:
                wake()
            self._gone(session, stream)

        def send(frame: bytes) -> None:
            line = jsonrpc.one_line(frame)
            stream.send(line, b"" if line.startswith(_WITH_ID) else None)

        request.on_disconnect = gone
        session.attach(send)

    def _gone(self, session: Session, stream: ResponseWriter | LoggedStream) -> None:
        """A general stream has lost its client."""
        if self._streams.get(session.id) is stream:
            del self._streams[session.id]
            session.attach(None)

    def delete(self, request: Request) -> None:
        """End a session."""
        session = self._find(request)
        if session is not None:
            self._end(session, CLIENT_ENDED)
            request.respond(200)


def _own_id(request: Request) -> str:
    """The session id that a request carries."""
    return request.headers["mcp-session-id"]


def _session_header(identifier: str) -> bytes:
    return b"Mcp-Session-Id: %b\r\n" % identifier.encode()


def _error(
    request: Request, status: int, message: str, code: int = jsonrpc.INVALID_REQUEST, identifier: bytes = jsonrpc.NULL
) -> None:
    request.respond(status, jsonrpc.error_response(identifier, jsonrpc.error_object(code, message)))
