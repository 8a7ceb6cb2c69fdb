"""What becomes of the responses to a Streamable HTTP client's requests."""

import asyncio
import re
import zlib
from collections.abc import Callable
from typing import Final, Protocol

from polyplex.errors import RemoteProtocolError, UpstreamBusy, UpstreamRefused
from polyplex.protocol.sse import SseDecoder, SseEvent
from polyplex.transports.body import BodyStream
from polyplex.transports.exchange import MAX_MESSAGE_BYTES, Exchange, Receiver
from polyplex.transports.http_client import Connection, HttpFailure

STREAM_FROM_BYTES: Final = 256 * 1024
MAX_ERROR_BYTES: Final = 1024 * 1024
MAX_REDIRECTS: Final = 5
MAX_IDLE_RESUMES: Final = 8
LINGER_SECONDS: Final = 5.0
LEAST_RETRY_SECONDS: Final = 0.05
MOST_RETRY_SECONDS: Final = 60.0
_USUAL: Final = frozenset({b"application/json", b"text/event-stream", b""})
_NOT_NOW: Final = frozenset({408, 425, 429})
_SESSION_WORDS: Final = re.compile(rb"session", re.IGNORECASE)
_RESULT_START: Final = b'{"jsonrpc":"2.0","id":%b,"result":{'


def media_type(headers: dict[bytes, bytes]) -> bytes:
    """The media type without parameters, lower case."""
    kind = headers.get(b"content-type", b"")
    return kind if kind in _USUAL else kind.partition(b";")[0].strip().lower()


def refused(server: str, status: int, reason: str) -> UpstreamBusy | UpstreamRefused:
    """The failure that a status below 500 means."""
    return (UpstreamBusy if status in _NOT_NOW else UpstreamRefused)(server, reason)


Inflate = Callable[[bytes], bytes]


def inflater(headers: dict[bytes, bytes]) -> Inflate | None:
    """A decoder for a compressed body, although none was asked for. It raises `RemoteProtocolError`."""
    encoding = headers.get(b"content-encoding", b"").strip().lower()
    if encoding not in (b"gzip", b"x-gzip", b"deflate"):
        return None
    decoder = zlib.decompressobj(47)

    def inflate(data: bytes) -> bytes:
        try:
            return decoder.decompress(data, MAX_MESSAGE_BYTES)
        except zlib.error as error:
            raise RemoteProtocolError(f"the compressed body is broken: {error}") from None

    return inflate


class Owner(Protocol):
    """What the sinks need of their client."""

    server: str
    receiver: Receiver
    session_id: str | None

    @property
    def resumable(self) -> bool:
        """True where a broken stream can be taken up again."""
        ...

    @property
    def is_closed(self) -> bool:
        """True once the client has been closed."""
        ...

    def post(self, sink: "PostSink") -> None:
        """Send the frame of a sink."""
        ...

    def get(self, sink: "EventStreamSink", last_event_id: bytes | None) -> None:
        """Open a stream."""
        ...

    def again(self, exchange: Exchange, sink: "PostSink") -> None:
        """The exchange of a sink is to be sent again."""
        ...

    def ended(self, exchange: Exchange | None) -> None:
        """The POST of an exchange is over."""
        ...

    def lost(self, exchange: Exchange, reason: str, *, sent: bool) -> None:
        """An exchange cannot be answered any more."""
        ...

    def took_session(self, identifier: bytes) -> None:
        """The server named the session."""
        ...

    def redirect(self, location: bytes) -> bool:
        """Follow a redirect; False where it leads to another origin."""
        ...

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after a while."""
        ...


class ResponseSink:
    """Common to all responses: event streams, bounded bodies, compression.

    One is made for each request, so what most never set has its default on the class.
    """

    connection: Connection | None = None
    last_event_id: bytes | None = None
    retry_ms = 1000
    retry_given = False
    _status = 0
    _headers: dict[bytes, bytes]
    _decoder: SseDecoder | None = None
    _inflate: Inflate | None = None
    _body: bytearray

    def __init__(self, client: "Owner") -> None:
        self.client = client

    def begin(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Common part of `on_head`; True where the body is to come piece by piece."""
        self._status, self._headers = status, headers
        if b"content-encoding" in headers:
            self._inflate = inflater(headers)
        if 200 <= status < 300 and media_type(headers) == b"text/event-stream":
            self._decoder = SseDecoder(MAX_MESSAGE_BYTES)
            return True
        length = headers.get(b"content-length", b"")
        limit = MAX_MESSAGE_BYTES if 200 <= status < 300 else MAX_ERROR_BYTES
        if length.isdigit() and int(length) <= limit and self._inflate is None:
            return False
        self._body = bytearray()
        return True

    def take(self, data: bytes) -> list[SseEvent]:
        """Common part of `on_data`. Raises `RemoteProtocolError` for a body out of bounds."""
        if self._inflate is not None:
            data = self._inflate(data)
        if self._decoder is not None:
            events = self._decoder.feed(data)
            for event in events:
                if event.id is not None:
                    self.last_event_id = event.id
                if event.retry is not None:
                    self.retry_ms, self.retry_given = event.retry, True
            return events
        limit = MAX_MESSAGE_BYTES if self._status < 300 else MAX_ERROR_BYTES
        if len(self._body) + len(data) > limit:
            raise RemoteProtocolError(f"the body is larger than {limit} bytes")
        self._body += data
        return []

    def detach(self) -> None:
        """The connection is no longer ours."""
        self.connection = None

    def drop(self) -> None:
        """Break the connection."""
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.abort()


class PostSink(ResponseSink):
    """The response to a POST (or to the DELETE that ends a session, with `done`)."""

    extra = b""
    _redirects = 0
    _prefix: bytes | None = None
    _stream: BodyStream | None = None
    _resume: "EventStreamSink | None" = None
    _lingers = False

    def __init__(
        self,
        client: "Owner",
        exchange: Exchange | None,
        frame: bytes,
        done: "asyncio.Future[None] | None" = None,
    ) -> None:
        self.client = client
        self.exchange = exchange
        self.frame = frame
        self._done = done

    @property
    def waiting(self) -> bool:
        """True until the request has been given to a connection."""
        return self.connection is None and not self._status

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Part of the sink interface."""
        session = headers.get(b"mcp-session-id")
        exchange = self.exchange
        if session is not None and status < 300 and exchange is not None and exchange.method == "initialize":
            self.client.took_session(session)
        stream = self.begin(status, headers)
        if (
            not stream
            and exchange is not None
            and exchange.streamable
            and status == 200
            and int(headers[b"content-length"]) >= STREAM_FROM_BYTES
            and media_type(headers) == b"application/json"
        ):
            self._prefix = _RESULT_START % exchange.id
            self._body = bytearray()
            return True
        return stream

    def on_data(self, data: bytes) -> None:
        """Part of the sink interface."""
        if self._stream is not None:
            self._stream.feed(data)
            return
        if self._prefix is not None:
            self._recognise(data)
            return
        try:
            events = self.take(data)
        except RemoteProtocolError as error:
            self.drop()
            if self._status < 300:
                self._lose(str(error))
            else:
                self.on_body(self._body)
            return
        for event in events:
            if event.data and event.event == b"message":
                self.client.receiver.received(event.data, self.exchange)
        exchange = self.exchange
        if events and exchange is not None and exchange.done() and not self._lingers:
            self._lingers = True
            self.client.later(LINGER_SECONDS, self._end_lingering)

    def _recognise(self, data: bytes) -> None:
        """A large body that starts as our response does goes through as it comes; any other is gathered."""
        prefix, exchange = self._prefix, self.exchange
        first = data if not self._body else bytes(self._body + data)
        if prefix is None or exchange is None or len(first) < len(prefix):
            self._body += data
            return
        self._prefix = None
        if not first.startswith(prefix) or self.connection is None:
            self._body += data
            return
        start = len(prefix) - 1  # the brace belongs to the result
        head = memoryview(first)[start:]
        self._body = bytearray()
        length = int(self._headers[b"content-length"]) - start
        self._stream = BodyStream(self.connection, head, length)
        self.client.ended(exchange)  # from here on whoever has the stream ends it
        self.client.receiver.streamed(self._stream, exchange)

    def _end_lingering(self) -> None:
        if self._decoder is not None:
            self.drop()
            self._over()

    def on_end(self) -> None:
        """Part of the sink interface."""
        if self._stream is not None:
            self._stream.finish(None)
            self._over()
        elif self._decoder is not None:
            self._decoder = None
            self._stream_ended("the event stream ended without an answer")
        else:
            self.on_body(self._body)

    def on_body(self, body: bytes | bytearray) -> None:
        """Part of the sink interface."""
        self._over()
        status, exchange = self._status, self.exchange
        if status in (307, 308) and self._follow():
            return
        if exchange is None:
            return
        if 200 <= status < 300:
            self._success(body, exchange)
        elif self._says_session_lost(body):
            self.client.receiver.session_lost(exchange)
        elif self._is_answer(body, exchange):
            self.client.receiver.received(body, exchange)
        elif status < 500:
            self.client.receiver.failed(exchange, refused(self.client.server, status, self._refusal(body)))
        else:
            self.client.lost(exchange, self._refusal(body), sent=True)

    def _says_session_lost(self, body: bytes | bytearray) -> bool:
        """404 means that the session is gone; some servers say 400 and mean the same."""
        if self.client.session_id is None:
            return False
        return self._status == 404 or (self._status == 400 and _SESSION_WORDS.search(body, 0, 4096) is not None)

    def _success(self, body: bytes | bytearray, exchange: Exchange) -> None:
        if body[:1] == b"{" or body.lstrip()[:1] in (b"{", b"["):
            self.client.receiver.received(body, exchange)
            if not exchange.done():
                self.client.lost(exchange, "the answer holds no response to the request", sent=True)
        elif body:
            kind = media_type(self._headers).decode("latin-1")
            self.client.lost(exchange, f"the server answered with {kind or 'no content type'}, not JSON", sent=True)
        else:
            self.client.lost(exchange, f"the server answered {self._status} without a body", sent=True)

    def _is_answer(self, body: bytes | bytearray, exchange: Exchange) -> bool:
        start = body.lstrip()[:1]
        return (
            start == b"{"
            and b'"jsonrpc"' in body
            and b'"error"' in body
            and (exchange.id in body or b'"id":null' in body or b'"id"' not in body)
        )

    def _follow(self) -> bool:
        location = self._headers.get(b"location")
        self._redirects += 1
        if (
            self._done is not None
            or location is None
            or self._redirects > MAX_REDIRECTS
            or not self.client.redirect(location)
        ):
            return False
        self.detach()
        self._status = 0
        self._decoder, self._inflate, self._body = None, None, bytearray()
        if self.exchange is not None:
            self.client.again(self.exchange, self)
        self.client.post(self)
        return True

    def _refusal(self, body: bytes | bytearray) -> str:
        status = self._status
        text = bytes(body[:200]).decode("utf-8", "replace").strip() if media_type(self._headers) != b"text/html" else ""
        hint = ""
        if status in (401, 403):
            hint = "; it wants credentials: set headers.Authorization for this server"
        elif status in (301, 302, 303, 307, 308):
            hint = f"; it moved to {self._headers.get(b'location', b'?').decode('latin-1')}: change url"
        wait = self._headers.get(b"retry-after", b"")
        if wait.isdigit() and len(wait) < 8:
            hint += f"; it asks to wait {int(wait)} s"
        return f"the server answered HTTP {status}{f' ({text})' if text else ''}{hint}"

    def on_failure(self, error: HttpFailure) -> None:
        """Part of the sink interface."""
        if self._stream is not None:
            self._stream.finish(error)
            self._over()
        elif self._decoder is not None:
            self._decoder = None
            self._stream_ended(str(error))
        else:
            self._lose(str(error), sent=error.sent)

    def _stream_ended(self, reason: str) -> None:
        self.detach()
        exchange = self.exchange
        if exchange is None or exchange.done():
            self._over()
        elif self.last_event_id is not None and self.client.resumable and not self.client.is_closed:
            self._resume = EventStreamSink(self.client, exchange, self)
            self._resume.last_event_id, self._resume.retry_ms = self.last_event_id, self.retry_ms
            if self.retry_given:
                self.client.receiver.suspended(exchange, self.retry_ms)
            self._resume.again()
        else:
            self._lose(reason)

    def _lose(self, reason: str, *, sent: bool = True) -> None:
        self._over()
        if self.exchange is not None:
            self.client.lost(self.exchange, reason, sent=sent)

    def _over(self) -> None:
        self.client.ended(self.exchange)
        if self._done is not None and not self._done.done():
            self._done.set_result(None)

    def abandon(self) -> None:
        """Nobody waits for the answer any more."""
        self._decoder = None
        if self._resume is not None:
            self._resume.stop()
        self.drop()


class EventStreamSink(ResponseSink):
    """A stream opened by GET: the session's own, or the rest of a broken POST stream (`exchange`)."""

    def __init__(self, client: "Owner", exchange: Exchange | None = None, origin: PostSink | None = None) -> None:
        super().__init__(client)
        self._exchange = exchange
        self._origin = origin
        self._idle = 0
        self._stopped = False

    def start(self) -> None:
        """Open the stream."""
        self._decoder, self._inflate, self._body = None, None, bytearray()
        if not self._stopped and not (self._exchange is not None and self._exchange.done()):
            self.client.get(self, self.last_event_id)

    def stop(self) -> None:
        """Close the stream for good."""
        self._stopped = True
        self.drop()

    def again(self) -> None:
        """Open the stream anew after the time the server asked for, longer each time nothing came."""
        if self._stopped:
            return
        self._idle += 1
        if self._exchange is not None and self._idle > MAX_IDLE_RESUMES:
            self._give_up("the stream broke and could not be taken up again")
            return
        asked = max(self.retry_ms / 1000, LEAST_RETRY_SECONDS)
        grown = min(asked * 2 ** min(max(0, self._idle - 2), 16), MOST_RETRY_SECONDS)
        self.client.later(max(asked, grown), self.start)

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Part of the sink interface."""
        if self._stopped:
            self.drop()
        return self.begin(status, headers)

    def on_data(self, data: bytes) -> None:
        """Part of the sink interface."""
        try:
            events = self.take(data)
        except RemoteProtocolError:
            self.drop()
            self.again()
            return
        for event in events:
            self._idle = 0
            if event.data and event.event == b"message":
                self.client.receiver.received(event.data, self._exchange)
        if self._exchange is not None and self._exchange.done():
            self.client.ended(self._exchange)
            self.stop()

    def on_end(self) -> None:
        """Part of the sink interface."""
        if self._decoder is None:
            self.on_body(self._body)
            return
        self.detach()
        self.again()

    def on_body(self, body: bytes | bytearray) -> None:
        """Part of the sink interface. No stream: the server has none, or none any more."""
        self.detach()
        if self._exchange is not None:
            self._give_up(f"the stream could not be taken up again: HTTP {self._status}")
        elif self._status >= 500:
            self.again()

    def on_failure(self, error: HttpFailure) -> None:
        """Part of the sink interface."""
        self.detach()
        self.again()

    def _give_up(self, reason: str) -> None:
        self._stopped = True
        if self._exchange is not None and not self._exchange.done():
            self.client.ended(self._exchange)
            self.client.lost(self._exchange, reason, sent=True)
