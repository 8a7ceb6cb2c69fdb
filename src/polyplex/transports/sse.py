"""HTTP+SSE (2024-11-05), client half: one event stream for all answers, POSTs to the URL that its first event names."""

import asyncio
from typing import Final

from polyplex.errors import RemoteProtocolError, UpstreamLost, UpstreamUnavailable
from polyplex.protocol.sse import SseDecoder
from polyplex.transports.exchange import MAX_MESSAGE_BYTES, Exchange, Receiver
from polyplex.transports.http_client import Connection, HttpFailure, HttpPool
from polyplex.transports.http_sinks import inflater, media_type, refused
from polyplex.transports.origins import host_header, request_path, within_origin
from polyplex.transports.proxy import route_for
from polyplex.transports.streamable_http import HttpEndpoint, configured_headers, tls_context

MAX_ERROR_BYTES: Final = 64 * 1024


class SseClient:
    """The session with one HTTP+SSE server."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self.server = endpoint.server
        self.receiver: Receiver
        self._endpoint = endpoint
        self._pool: HttpPool
        self._post_url = ""
        self._posts: set[Exchange] = set()
        self._stream = _Events(self)
        self._ready: asyncio.Future[str]
        self._closed = False

    async def open(self, receiver: Receiver) -> None:
        """Open the stream and wait for the endpoint event."""
        self.receiver = receiver
        self._ready = asyncio.get_running_loop().create_future()
        try:
            route = route_for(self._endpoint.url)
        except ValueError as error:
            raise UpstreamUnavailable(self.server, f"url {self._endpoint.url!r}: {error}") from None
        self._pool = HttpPool(route, tls_context(self._endpoint), self._endpoint.connect_timeout)
        self._pool.request(self._head("GET", self._endpoint.url, "Accept: text/event-stream\r\n"), b"", self._stream)
        try:
            async with asyncio.timeout(self._endpoint.connect_timeout):
                endpoint = await self._ready
        except TimeoutError:
            self._end()
            what = "opened but named no endpoint" if self._stream.connection is not None else "did not open"
            raise UpstreamUnavailable(self.server, f"the event stream {what} in time") from None
        except BaseException:
            self._end()
            raise
        self._post_url = self._resolve(endpoint)

    def _resolve(self, endpoint: str) -> str:
        """The URL of the endpoint event against that of the stream (RFC 3986, 5.2); another origin is refused."""
        url = within_origin(self._endpoint.url, endpoint)
        if url is None:
            self._end()
            raise UpstreamUnavailable(self.server, f"the endpoint event names another origin: {endpoint[:200]!r}")
        return url

    def _end(self) -> None:
        self._closed = True
        self._stream.stop()
        self._pool.close()

    def _head(self, method: str, url: str, extra: str) -> bytes:
        route = self._pool.route
        proxy = "" if route.tunnel else route.proxy_headers
        lines = f"{method} {route.prefix}{request_path(url)} HTTP/1.1\r\nHost: {host_header(url)}\r\n"
        return (lines + proxy + configured_headers(self._endpoint) + extra + "\r\n").encode("latin-1", "replace")

    def established(self, revision: str, *, stateful: bool) -> None:
        """The handshake is over; this transport needs nothing from it."""

    @property
    def cancels_by_closing(self) -> bool:
        """Never: answers share one stream."""
        return False

    def send(
        self, frame: bytes, exchange: Exchange | None = None, headers: list[tuple[str, str]] | None = None
    ) -> None:
        """POST a frame."""
        extra = f"Content-Type: application/json\r\nContent-Length: {len(frame)}\r\n"
        self._pool.request(self._head("POST", self._post_url, extra), frame, _Post(self, exchange))

    def abandon(self, exchange: Exchange) -> None:
        """Nothing to close: the answer, if it comes, is dropped."""

    def named_endpoint(self, data: str) -> None:
        """The first event came."""
        if not self._ready.done():
            self._ready.set_result(data)

    def stream_ended(self, reason: str) -> None:
        """The stream is over, and with it the session."""
        if not self._ready.done():
            self._ready.set_exception(UpstreamUnavailable(self.server, reason))
        elif not self._closed:
            self._closed = True
            self._pool.close()
            self.receiver.closed(reason)

    async def close(self) -> None:
        """Close the stream."""
        self._end()


class _Events:
    """The event stream."""

    def __init__(self, client: SseClient) -> None:
        self.connection: Connection | None = None
        self._client = client
        self._decoder: SseDecoder | None = None
        self._status = 0
        self._inflate = inflater({})

    def stop(self) -> None:
        if self.connection is not None:
            self.connection.abort()

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Part of the sink interface."""
        self._status = status
        self._inflate = inflater(headers)
        if 200 <= status < 300 and media_type(headers) == b"text/event-stream":
            self._decoder = SseDecoder(MAX_MESSAGE_BYTES)
        return True

    def on_data(self, data: bytes) -> None:
        """Part of the sink interface."""
        if self._decoder is None:
            return
        try:
            events = self._decoder.feed(data if self._inflate is None else self._inflate(data))
        except RemoteProtocolError as error:
            self.stop()
            self._client.stream_ended(str(error))
            return
        for event in events:
            if event.event == b"endpoint":
                self._client.named_endpoint(event.data.decode("utf-8", "replace").strip())
            elif event.data and event.event == b"message":
                self._client.receiver.received(event.data, None)

    def on_end(self) -> None:
        """Part of the sink interface."""
        if self._decoder is None:
            self._client.stream_ended(f"no event stream: the server answered HTTP {self._status}")
        else:
            self._client.stream_ended("the server ended the event stream")

    def on_body(self, body: bytes | bytearray) -> None:
        """Part of the sink interface."""
        self.on_end()

    def on_failure(self, error: HttpFailure) -> None:
        """Part of the sink interface."""
        self._client.stream_ended(str(error))


class _Post:
    """The response to a POST: any 2xx will do, the answer comes on the stream."""

    def __init__(self, client: SseClient, exchange: Exchange | None) -> None:
        self.connection: Connection | None = None
        self._client = client
        self._exchange = exchange
        self._status = 0

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Part of the sink interface."""
        self._status = status
        return True

    def on_data(self, data: bytes) -> None:
        """Part of the sink interface. Its content says nothing that counts."""

    def on_end(self) -> None:
        """Part of the sink interface."""
        if not 200 <= self._status < 300 and self._exchange is not None:
            reason = f"the server answered HTTP {self._status} to the message"
            self._client.receiver.failed(self._exchange, refused(self._client.server, self._status, reason))

    def on_body(self, body: bytes | bytearray) -> None:
        """Part of the sink interface."""
        self.on_end()

    def on_failure(self, error: HttpFailure) -> None:
        """Part of the sink interface."""
        if self._exchange is not None:
            kind = UpstreamLost if error.sent else UpstreamUnavailable
            self._client.receiver.failed(self._exchange, kind(self._client.server, str(error)))
