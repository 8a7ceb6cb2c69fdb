"""Streamable HTTP, client half: one POST a message, answers as JSON or as an event stream (both eras)."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

import msgspec

from polyplex.errors import UpstreamLost, UpstreamUnavailable
from polyplex.protocol.revisions import Era, era_of, has_resumption
from polyplex.transports.exchange import Exchange, Receiver
from polyplex.transports.http_client import HttpPool
from polyplex.transports.http_sinks import EventStreamSink, PostSink
from polyplex.transports.origins import host_header, request_path, within_origin
from polyplex.transports.proxy import route_for

DELETE_SECONDS: Final = 2.0


class HttpEndpoint(msgspec.Struct, frozen=True):
    """Where an HTTP upstream is and what every request to it carries."""

    server: str
    url: str
    headers: dict[str, str]
    ca_file: str | None = None
    connect_timeout: float = 30.0


def tls_context(endpoint: HttpEndpoint) -> ssl.SSLContext | None:
    """The TLS settings for an endpoint; None for plain HTTP. Verification cannot be turned off."""
    if not endpoint.url.lower().startswith("https:"):
        return None
    try:
        return ssl.create_default_context(cafile=endpoint.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UpstreamUnavailable(endpoint.server, f"caFile {endpoint.ca_file}: {error}") from None


def configured_headers(endpoint: HttpEndpoint) -> str:
    """The configured headers as header lines. Raises `UpstreamUnavailable` for one that would smuggle another."""
    lines: list[str] = []
    for name, value in endpoint.headers.items():
        if any(mark in name + value for mark in "\r\n\0"):
            raise UpstreamUnavailable(endpoint.server, f"the header {name!r} holds a line break")
        if name.lower() not in ("content-length", "transfer-encoding", "connection", "host"):
            lines.append(f"{name}: {value}\r\n")
    return "".join(lines)


class StreamableHttpClient:
    """The session with one endpoint."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self.server = endpoint.server
        self.receiver: Receiver
        self.session_id: str | None = None
        self.revision: str | None = None
        self._endpoint = endpoint
        self._url = endpoint.url
        self._pool: HttpPool
        self._posts: dict[Exchange, PostSink] = {}
        self._listener: EventStreamSink | None = None
        self._stateful = False
        self._closed = False
        self._head = b""
        self._timers: set[asyncio.TimerHandle] = set()

    # -- life
    async def open(self, receiver: Receiver) -> None:
        """Nothing is dialled before the first request."""
        self.receiver = receiver
        try:
            route = route_for(self._url)
        except ValueError as error:
            raise UpstreamUnavailable(self.server, f"url {self._url!r}: {error}") from None
        self._pool = HttpPool(route, tls_context(self._endpoint), self._endpoint.connect_timeout)
        self._build_head()

    def established(self, revision: str, *, stateful: bool) -> None:
        """The handshake is over."""
        self.revision = revision
        self._stateful = stateful
        self._build_head()

    def listen(self) -> None:
        """Open the session's own stream (GET); a server that has none answers 405 and that is that."""
        if self._stateful and self._listener is None and not self._closed:
            self._listener = EventStreamSink(self)
            self._listener.start()

    @property
    def cancels_by_closing(self) -> bool:
        """Closing the response stream is the cancellation in the modern era."""
        return self.revision is not None and era_of(self.revision) is Era.MODERN

    @property
    def resumable(self) -> bool:
        """True where a broken stream can be taken up again with `Last-Event-ID`."""
        return self.revision is not None and has_resumption(self.revision)

    async def close(self) -> None:
        """End the session with DELETE, then close all connections."""
        if self._closed:
            return
        self._closed = True
        for timer in self._timers:
            timer.cancel()
        if self._listener is not None:
            self._listener.stop()
        if self.session_id is not None:
            done = asyncio.get_running_loop().create_future()
            sink = PostSink(self, None, b"", done)
            self._pool.request(self.head("DELETE", length=0), b"", sink, urgent=True)
            try:
                async with asyncio.timeout(DELETE_SECONDS):
                    await done
            except TimeoutError:
                pass
        self._pool.close()

    # -- requests
    def _build_head(self) -> None:
        route = self._pool.route
        path, host = request_path(self._url), host_header(self._url)
        proxy = "" if route.tunnel else route.proxy_headers
        lines = f" {route.prefix}{path} HTTP/1.1\r\nHost: {host}\r\n{proxy}{configured_headers(self._endpoint)}"
        if self.session_id is not None:
            lines += f"Mcp-Session-Id: {self.session_id}\r\n"
        if self.revision is not None and self.revision >= "2025-06-18":
            lines += f"MCP-Protocol-Version: {self.revision}\r\n"
        self._head = lines.encode("latin-1", "replace")
        self._post_head = (
            b"POST" + self._head + b"Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        )

    def head(self, method: str, extra: str = "", length: int | None = None) -> bytes:
        """The head of a request other than POST."""
        size = "" if length is None else f"Content-Length: {length}\r\n"
        return method.encode() + self._head + f"{extra}{size}\r\n".encode("latin-1", "replace")

    def send(
        self, frame: bytes, exchange: Exchange | None = None, headers: list[tuple[str, str]] | None = None
    ) -> None:
        """POST a frame."""
        extra = b"" if not headers else "".join(f"{name}: {value}\r\n" for name, value in headers).encode("latin-1")
        sink = PostSink(self, exchange, frame)
        sink.extra = extra
        if exchange is not None:
            self._posts[exchange] = sink
        self.post(sink)

    def post(self, sink: PostSink) -> None:
        """Send, or send again, the frame of a sink."""
        frame = sink.frame
        head = b"%b%bContent-Length: %d\r\n\r\n" % (self._post_head, sink.extra, len(frame))
        self._pool.request(head, frame, sink, urgent=sink.exchange is None)

    def get(self, sink: EventStreamSink, last_event_id: bytes | None) -> None:
        """Open a stream by GET, after the event `last_event_id` where one is given."""
        extra = "Accept: text/event-stream\r\n"
        if last_event_id is not None:
            extra += f"Last-Event-ID: {last_event_id.decode('latin-1')}\r\n"
        self._pool.request(self.head("GET", extra), b"", sink, urgent=True)

    def abandon(self, exchange: Exchange) -> None:
        """Close the stream of an exchange."""
        sink = self._posts.pop(exchange, None)
        if sink is not None:
            if sink.waiting:
                self._pool.withdraw(sink)
            sink.abandon()

    def again(self, exchange: Exchange, sink: PostSink) -> None:
        """The exchange of a sink is to be sent again."""
        self._posts[exchange] = sink

    def ended(self, exchange: Exchange | None) -> None:
        """The POST of an exchange is over."""
        if exchange is not None:
            self._posts.pop(exchange, None)

    def took_session(self, identifier: bytes) -> None:
        """The server named the session."""
        text = identifier.decode("latin-1")
        if self.session_id is None and all(0x21 <= ord(mark) <= 0x7E for mark in text) and len(text) <= 1024:
            self.session_id = text
            self._build_head()

    def redirect(self, location: bytes) -> bool:
        """Follow a redirect within the origin; False where it leads elsewhere."""
        url = within_origin(self._url, location.decode("latin-1"))
        if url is None:
            return False
        self._url = url
        self._build_head()
        return True

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Run a callable after a while, unless the client is closed by then."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            self._timers.discard(timer)
            if not self._closed:
                action()

        timer = loop.call_later(seconds, run)
        self._timers.add(timer)

    def lost(self, exchange: Exchange, reason: str, *, sent: bool) -> None:
        """Report an exchange that cannot be answered any more."""
        kind = UpstreamLost if sent else UpstreamUnavailable
        self.receiver.failed(exchange, kind(self.server, reason))

    @property
    def is_closed(self) -> bool:
        """True once `close` was called."""
        return self._closed
