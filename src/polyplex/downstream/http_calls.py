"""One request over HTTP and its response: JSON where one message answers it, an event stream where more come first."""

import asyncio
from typing import Final

from polyplex.downstream.calls import response_frame, whole_reply
from polyplex.downstream.session import Call
from polyplex.protocol import jsonrpc
from polyplex.protocol.revisions import Era
from polyplex.protocol.sse import COMMENT, encode_event
from polyplex.transports.body import BodyStream
from polyplex.transports.exchange import Reply
from polyplex.transports.http_server import Request, ResponseWriter

KEEP_ALIVE_SECONDS: Final = 10.0
_STATUS_OF: Final = {
    jsonrpc.METHOD_NOT_FOUND: 404,
    jsonrpc.HEADER_MISMATCH: 400,
    jsonrpc.MISSING_CAPABILITY: 400,
    jsonrpc.UNSUPPORTED_REVISION: 400,
}
_RESULT: Final = b',"result":'
_ID: Final = b'{"jsonrpc":"2.0","id":'


class HttpCall:
    """Answers one POST. It turns into an event stream when a frame has to go out before the response."""

    __slots__ = ("_body", "_readers", "_request", "_session_header", "_since", "_writer", "accepts_events", "call")

    def __init__(self, request: Request, session_header: bytes = b"") -> None:
        self.call: Call
        self.accepts_events = "text/event-stream" in request.headers.get("accept", "") or "*/*" in request.headers.get(
            "accept", "*/*"
        )
        self._request = request
        self._session_header = session_header
        self._writer: ResponseWriter | None = None
        self._body: BodyStream | None = None
        self._readers: asyncio.Task[None] | None = None
        self._since = asyncio.get_running_loop().time()

    def send(self, frame: bytes) -> None:
        """Write a frame before the response; a client that takes no event stream goes without."""
        if self._request.answered or not self.accepts_events:
            return
        self._open().write(encode_event(jsonrpc.one_line(frame)))
        self._since = asyncio.get_running_loop().time()

    def _open(self) -> ResponseWriter:
        if self._writer is None:
            self._writer = self._request.respond_events(self._session_header)
        return self._writer

    def keep_alive(self, now: float) -> None:
        """Show signs of life on a quiet stream, so that nobody in between cuts it."""
        if now - self._since >= KEEP_ALIVE_SECONDS and self.accepts_events and not self._request.answered:
            self._open().write(COMMENT)
            self._since = now

    @property
    def full(self) -> bool:
        """True while the client reads more slowly than it is written to."""
        return self._writer is not None and self._writer.full

    def answer(self, call: Call, reply: Reply) -> None:
        """Write the response."""
        if reply.stream is not None:
            self._answer_stream(call, reply.stream)
        elif self._writer is not None:
            self._writer.write(encode_event(jsonrpc.one_line(response_frame(call, reply))))
            self._writer.end()
        elif reply.result is not None and not self._session_header:
            self._request.respond_json((_ID, call.id, _RESULT, reply.result, b"}"))
        else:
            self._request.respond(self._status(call, reply), response_frame(call, reply), extra=self._session_header)

    def _status(self, call: Call, reply: Reply) -> int:
        """Modern clients are told by the status as well (2026-07-28, "Streamable HTTP")."""
        if reply.error is None or call.session.era is Era.LEGACY:
            return 200
        return _STATUS_OF.get(jsonrpc.decode_error(reply.error).code, 200)

    def _answer_stream(self, call: Call, stream: BodyStream) -> None:
        if self._writer is not None:
            self._readers = asyncio.get_running_loop().create_task(self._gather(call, Reply(stream=stream)))
            return
        prefix = _ID + call.id + _RESULT
        writer = self._request.respond_sized(len(prefix) + stream.length)
        if writer.closed:
            stream.abort()
            return
        self._body = stream
        writer.write(prefix)
        writer.on_writable = stream.resume
        self._request.on_disconnect = stream.abort

        def forward(data: bytes) -> None:
            writer.write(data)
            if writer.full:
                stream.pause()

        def finish(error: Exception | None) -> None:
            if error is None:
                writer.end()
            else:
                writer.abort()

        stream.attach(forward, finish)

    async def _gather(self, call: Call, reply: Reply) -> None:
        self.answer(call, await whole_reply(reply))

    def unanswered(self, call: Call) -> None:
        """The client cancelled the request: the stream ends without a response."""
        if not self._request.answered:
            self._open().end()
