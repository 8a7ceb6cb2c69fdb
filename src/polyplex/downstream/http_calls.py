"""One request over HTTP and its response: JSON where one message answers it, an event stream where more come first."""

import asyncio
from typing import Final

from polyplex.downstream.calls import response_frame, whole_reply
from polyplex.downstream.logged_stream import RETRY_MS, LoggedStream
from polyplex.downstream.session import Call, Session
from polyplex.protocol import jsonrpc
from polyplex.protocol.revisions import LEGACY, R2025_11_25, has_resumption
from polyplex.protocol.sse import COMMENT, encode_event
from polyplex.transports.body import BodyStream
from polyplex.transports.exchange import Reply
from polyplex.transports.http_server import Request, ResponseWriter

KEEP_ALIVE_SECONDS: Final = 8.0
PRIME_SECONDS: Final = 1.0
_STATUS_OF: Final = {
    jsonrpc.METHOD_NOT_FOUND: 404,
    jsonrpc.HEADER_MISMATCH: 400,
    jsonrpc.MISSING_CAPABILITY: 400,
    jsonrpc.UNSUPPORTED_REVISION: 400,
}
_RESULT: Final = b',"result":'
_ID: Final = b'{"jsonrpc":"2.0","id":'
_RESULT_GONE: Final = (
    "the result came while you were away and is no longer kept; whether to ask again is for you to say"
)


class HttpCall:
    """Answers one POST. It turns into an event stream when a frame has to go out before the response.

    `active` holds the calls under way; a call leaves it when it is answered. `whole` keeps the answer from becoming a
    stream. One is made for each request, so what most never set has its default on the class.
    """

    call: Call | None = None
    whole = False
    _stream: LoggedStream | None = None
    _writer: ResponseWriter | None = None
    _body: BodyStream | None = None
    _readers: "asyncio.Task[None] | None" = None

    def __init__(
        self,
        request: Request,
        active: "set[HttpCall]",
        loop: asyncio.AbstractEventLoop,
        session: Session,
        session_header: bytes = b"",
    ) -> None:
        self._session = session
        self._request = request
        self._active = active
        self._loop = loop
        self._session_header = session_header
        self._since = request.connection.since
        active.add(self)

    @property
    def accepts_events(self) -> bool:
        """True where the client takes an event stream."""
        accept = self._request.headers.get("accept", "*/*")
        return not self.whole and ("text/event-stream" in accept or "*/*" in accept)

    @property
    def session(self) -> Session:
        """The session of the request."""
        return self._session

    @property
    def connected(self) -> bool:
        """True while a client is there to read the answer, on the request's connection or where it came again."""
        if self._stream is not None:
            return self._stream.connected
        return self._request.connection.serves(self._request)

    def send(self, frame: bytes) -> None:
        """Write a frame before the response, never after; a client that takes no event stream goes without."""
        if self in self._active and self.accepts_events:
            self._write(jsonrpc.one_line(frame))
            self._since = self._loop.time()

    def _write(self, frame: bytes, instead: bytes = b"") -> None:
        """Write an event. It is remembered where the client can take the stream up again after a break."""
        writer = self._open()
        if self._stream is not None:
            self._stream.send(frame, instead if frame.startswith(_ID) else None)
        else:
            writer.write(encode_event(frame))

    def _open(self, retry_ms: int = RETRY_MS) -> ResponseWriter:
        """The stream of the call, opened with a priming event where the revision has those (2025-11-25)."""
        if self._writer is None:
            self._writer = self._request.respond_events(self._session_header)
            session = self._session
            # A client that left before it was told of the stream can never ask for it.
            if session.era is LEGACY and has_resumption(session.revision) and not self._writer.closed:
                log = session.event_log()
                stream = self._stream = session.resumable[name] = LoggedStream(log, name := log.open_stream())
                stream.carry(self._writer)
                stream.prime(session.revision, retry_ms)
        return self._writer

    def suspend(self, retry_ms: int) -> None:
        """The server has closed its stream and is polled: so does the client, and is told when to come again."""
        if self.accepts_events and self._session.revision >= R2025_11_25 and not self._request.answered:
            opened = self._writer is not None
            self._open(retry_ms)
            if self._stream is not None:
                if opened:
                    self._stream.prime(self._session.revision, retry_ms)
                self._stream.close()

    def keep_alive(self, now: float) -> None:
        """Show signs of life on a quiet stream, so that nobody in between cuts it; let a long call be resumable."""
        quiet = now - self._since
        if quiet < PRIME_SECONDS or self._body is not None:
            return
        if self._writer is None:
            primes = self._session.revision >= R2025_11_25 and self._session.era is LEGACY
            if quiet < (PRIME_SECONDS if primes else KEEP_ALIVE_SECONDS) or not self.accepts_events:
                return
            if self._request.answered or not self.connected:
                return
            self._open()
        elif quiet < KEEP_ALIVE_SECONDS:
            return
        writer = self._writer if self._stream is None else self._stream.writer
        if writer is not None:
            writer.write(COMMENT)
        self._since = now

    @property
    def full(self) -> bool:
        """True while the client reads more slowly than it is written to."""
        writer = self._writer if self._stream is None else self._stream.writer
        return writer is not None and writer.full

    def answer(self, call: Call, reply: Reply) -> None:
        """Write the response."""
        if reply.stream is not None:
            self._answer_stream(call, reply.stream)
            return
        self._active.discard(self)
        if self._writer is not None:
            gone = jsonrpc.error_object(jsonrpc.INTERNAL_ERROR, _RESULT_GONE)
            self._write(jsonrpc.one_line(response_frame(call, reply)), jsonrpc.error_response(call.id, gone))
            self._finish()
        elif reply.result is not None and not self._session_header:
            self._request.respond_json((_ID, call.id, _RESULT, reply.result, b"}"))
        else:
            self._request.respond(self._status(call, reply), response_frame(call, reply), extra=self._session_header)

    def _finish(self) -> None:
        if self._stream is not None:
            self._stream.end()
            self._session.resumable.pop(self._stream.name, None)
        elif self._writer is not None:
            self._writer.end()

    def _status(self, call: Call, reply: Reply) -> int:
        """Modern clients are told by the status as well (2026-07-28, "Streamable HTTP")."""
        if reply.error is None or call.session.era is LEGACY:
            return 200
        return _STATUS_OF.get(jsonrpc.decode_error(reply.error).code, 200)

    def _answer_stream(self, call: Call, stream: BodyStream) -> None:
        if self._writer is not None or self._session_header:
            self._readers = self._loop.create_task(self._gather(call, Reply(stream=stream)))
            return
        prefix = _ID + call.id + _RESULT
        writer = self._request.respond_sized(len(prefix) + stream.length, prefix)
        self._body = stream
        if writer.closed:
            self._body_lost()
            return
        writer.on_writable = stream.resume
        self._request.on_disconnect = self._body_lost

        def forward(data: bytes | memoryview) -> None:
            writer.write(data)
            if writer.full:
                stream.pause()

        def finish(error: Exception | None) -> None:
            self._active.discard(self)
            if error is None:
                writer.end()
            else:
                writer.abort()

        stream.attach(forward, finish)

    def _body_lost(self) -> None:
        """The client left before it had the whole result."""
        self._active.discard(self)
        if self._body is not None:
            self._body.abort()

    async def _gather(self, call: Call, reply: Reply) -> None:
        self.answer(call, await whole_reply(reply))

    def unanswered(self, call: Call) -> None:
        """The client cancelled the request: the stream ends without a response."""
        self._active.discard(self)
        if self._writer is not None or not self._request.answered:
            self._open()
            self._finish()
