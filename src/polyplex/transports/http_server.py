"""A small HTTP/1.1 server for the endpoint: callbacks instead of tasks, llhttp for parsing, limits on everything.

It knows requests and responses, not what they mean: a handler gets each request once its body is whole.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, cast

import httptools
import msgspec

from polyplex.transports.batch import batch_of
from polyplex.transports.heads import SMALL_BYTES, HeadCache
from polyplex.transports.http_request import JOIN_BYTES, REASONS, Request, ResponseWriter, head_without_offer

RECEIVE_BYTES: Final = 256 * 1024
_SINGLE: Final = frozenset({"host", "origin", "authorization", "content-length", "content-type"})
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LINGER_SECONDS: Final = 2.0
CLOSE_SECONDS: Final = 1.0
LEAST_BYTES_PER_SECOND: Final = 16 * 1024


def _repeated(request: "Request", key: str, text: str) -> None:
    """A header that comes twice: a list of both, but for those that must not be doubled."""
    if key in _SINGLE or key.startswith("mcp-"):
        request.duplicate = key
    request.headers[key] += ", " + text


def _name(raw: bytes) -> str:
    """A header name in lower case; the usual spellings are remembered."""
    name = raw.decode("latin-1").lower()
    if len(_names) < 256 and len(raw) < 64:
        _names[bytes(raw)] = name
    return name


_names: dict[bytes, str] = {}


class HttpLimits(msgspec.Struct, frozen=True):
    """Bounds of the server; bytes and seconds."""

    header_bytes: int = 32 * 1024
    headers: int = 128
    body_bytes: int = 16 * 1024 * 1024
    connections: int = 4096
    request_seconds: float = 30.0
    idle_seconds: float = 120.0
    write_stall_seconds: float = 60.0
    write_buffer_bytes: int = 64 * 1024 * 1024
    pipelined: int = 32


Handler = Callable[[Request], None]


class ServerConnection(asyncio.Protocol):
    """One client connection; requests are served one after the other."""

    def __init__(self, server: "HttpServer") -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._next: Request | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._header_bytes = 0
        self._ready: deque[Request] = deque()
        self._active: Request | None = None
        self._writer: ResponseWriter | None = None
        self._refused = False
        self._serving = False
        self._barren = 0
        self._watched: Request | None = None
        self._watched_since = 0.0
        self._header_limit = server.limits.header_bytes
        self._batch = server.batch
        self._heads: HeadCache[tuple[str, str, dict[str, str]]] = HeadCache()
        self.write_paused = False
        self.since = server.now

    # -- asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio's protocol interface."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=1024 * 1024)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != getattr(socket, "AF_UNIX", None):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if not self._server.admit(self):
            self._refuse(503, b"too many connections")

    def data_received(self, data: bytes) -> None:
        """Part of asyncio's protocol interface."""
        if self._refused:
            return
        self.since = self._server.now
        whole = len(data) <= SMALL_BYTES and self._next is None and self._active is None
        if whole:
            found = self._heads.find(data)
            if found is not None:
                self._active = request = Request(self)
                self._batch.load += 1
                (request.method, request.target, request.headers), request.body = found
                self._server.handler(request)
                return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as offer:
            if not self._decline(data[offer.args[0] :]):
                return
        except (httptools.HttpParserCallbackError, httptools.HttpParserError):
            self._refuse(400, b"malformed HTTP request")
            return
        if whole and len(self._ready) == 1 and self._next is None:
            self._remember(data, self._ready[0])
        if self._active is None:
            self._serve()
        if self._next is not None:
            self._bound(len(data))
        if len(self._ready) > self._server.limits.pipelined:
            self._refuse(400, b"too many pipelined requests")

    def _remember(self, data: bytes, request: Request) -> None:
        """A plain request that came whole: the next with the same head need not be parsed."""
        headers = request.headers
        odd = request.close or request.duplicate is not None or "transfer-encoding" in headers or "expect" in headers
        if not odd and headers.get("content-length", "0") == str(len(request.body)):
            self._heads.remember(data, len(request.body), (request.method, request.target, headers))

    def _decline(self, rest: bytes) -> bool:
        """Stay with HTTP/1.1, as a server may (RFC 9110, 7.8); False where the request is refused.

        llhttp takes all after the head for another protocol, a body as well: it gets the head anew, without the offer.
        """
        while not self._refused and self._ready:
            offering = self._ready.pop()
            if offering.method == "CONNECT":
                self._refuse(400, b"this is no proxy")
                return False
            before, head, again = len(self._ready), head_without_offer(offering), False
            try:
                self._parser.feed_data(head + rest)
            except httptools.HttpParserUpgrade as offer:
                rest, again = rest[offer.args[0] - len(head) :], True
            except (httptools.HttpParserCallbackError, httptools.HttpParserError):
                self._refuse(400, b"malformed HTTP request")
                return False
            request = self._ready[before] if len(self._ready) > before else self._next
            if request is not None:
                request.duplicate = offering.duplicate
            if not again:
                return not self._refused
        return False

    def _bound(self, nbytes: int) -> None:
        """Refuse bytes that end no header and belong to no body: the parser keeps them until their line ends."""
        self._barren += nbytes
        if self._barren > self._header_limit + RECEIVE_BYTES:
            self._refuse(431, b"request headers too large")

    def eof_received(self) -> bool:
        """Part of asyncio's protocol interface. True keeps a half-closed client that waits for a whole answer."""
        active = self._active
        if active is None or self._writer is not None or active.on_disconnect is not None:
            return False
        (self._ready[-1] if self._ready else active).close = True
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's protocol interface."""
        self._transport = None
        self._server.leave(self)
        if self._writer is not None:
            self._writer.closed = True
        active, self._active = self._active, None
        if active is not None:
            self._batch.load -= 1
        self._ready.clear()
        if active is not None and active.on_disconnect is not None:
            active.on_disconnect()

    def pause_writing(self) -> None:
        """Part of asyncio's protocol interface."""
        self.write_paused = True
        self.since = self._server.now

    def resume_writing(self) -> None:
        """Part of asyncio's protocol interface."""
        self.write_paused = False
        self.since = self._server.now
        if self._writer is not None and self._writer.on_writable is not None:
            self._writer.on_writable()

    # -- llhttp
    def on_message_begin(self) -> None:
        """Part of llhttp's callback interface."""
        self._next = request = Request(self)
        request.headers = {}
        self._parts = []
        self._size = self._header_bytes = self._barren = 0

    def on_url(self, url: bytes) -> None:
        """Part of llhttp's callback interface."""
        self._header_bytes += len(url)
        if self._next is not None and self._header_bytes <= self._server.limits.header_bytes:
            self._next.target += url.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of llhttp's callback interface."""
        size = self._header_bytes = self._header_bytes + len(name) + len(value) + 4
        request = self._next
        if request is None or size > self._header_limit:
            self._refuse(431, b"request headers too large")
            return
        key = _names.get(name) or _name(name)
        headers = request.headers
        if key in headers:
            _repeated(request, key, value.decode("latin-1").strip())
        else:
            headers[key] = value.rstrip().decode("latin-1")

    def on_headers_complete(self) -> None:
        """Part of llhttp's callback interface."""
        request = self._next
        if request is None or self._refused:
            return
        request.method = self._parser.get_method().decode("latin-1")
        headers = request.headers
        length = headers.get("content-length", "0")
        if len(headers) > self._server.limits.headers:
            self._refuse(431, b"too many request headers")
        elif length.isdigit() and int(length) > self._server.limits.body_bytes:
            self._refuse(413, b"request body too large")
        elif "expect" in headers and headers["expect"].lower() == "100-continue" and self._active is None:
            self.write((_CONTINUE,))  # never into another response: such a client goes on by itself after a while

    def on_body(self, body: bytes) -> None:
        """Part of llhttp's callback interface."""
        self._size += len(body)
        self._barren = 0
        if self._size > self._server.limits.body_bytes:
            self._refuse(413, b"request body too large")
        elif not self._refused:
            self._parts.append(body)

    def on_message_complete(self) -> None:
        """Part of llhttp's callback interface."""
        request = self._next
        if request is None or self._refused:
            return
        self._next = None
        parts = self._parts
        request.body = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        request.close = not self._parser.should_keep_alive()
        self._ready.append(request)
        if len(self._ready) > 1 and sum(len(each.body) for each in self._ready) > self._server.limits.body_bytes:
            self._refuse(413, b"too much in pipelined requests")

    # -- serving
    def _serve(self) -> None:
        self._serving = True
        while self._ready and self._active is None and self._transport is not None:
            self._active = request = self._ready.popleft()
            self._batch.load += 1
            self._server.handler(request)
        self._serving = False

    def _refuse(self, status: int, message: bytes) -> None:
        """Answer what breaks the rules or the limits, and read nothing more. What came before is served first."""
        if self._refused:
            return
        self._refused, self._next, self._parts = True, None, []
        self.since = self._server.now
        last = self._ready[-1] if self._ready else self._active
        if last is not None:
            last.close = True
            if self._active is None:
                self._serve()
        elif self._transport is not None:
            head = b"HTTP/1.1 %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
            self._batch.flush()
            self._transport.write(head % (REASONS[status], len(message)) + message)
            if status in (503, 408):
                self._transport.close()
            else:
                self._transport.write_eof()  # closed with bytes unread, the client might lose the answer

    def respond(self, request: Request, head: bytes, parts: tuple[bytes, ...]) -> None:
        """Write a whole response."""
        if self._transport is None or self._active is not request:
            return
        if request.close:
            head = head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
        if len(parts) == 1 and len(parts[0]) <= JOIN_BYTES:
            self._batch.write(self._transport, head + parts[0])
        else:
            self._batch.flush()
            self._transport.writelines((head, *parts))
        self.finish(request)

    def begin(self, request: Request, head: bytes, writer: ResponseWriter) -> None:
        """Write the head of a response whose body comes in pieces."""
        if self._transport is None or self._active is not request:
            writer.closed = True
            return
        if request.close:
            head = head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1)
        self._writer = writer
        self._batch.flush()
        self._transport.write(head)

    def write(self, parts: tuple[bytes | memoryview, ...]) -> None:
        """Write bytes; a client that lets too much pile up is dropped."""
        if self._transport is None:
            return
        if sum(map(len, parts)) <= JOIN_BYTES:
            self._transport.write(b"".join(parts))
        else:
            self._transport.writelines(parts)

    def finish(self, request: Request) -> None:
        """The response is written; go on with the next request."""
        if self._active is not request:
            return
        request.answered = True
        request.on_disconnect = None
        self._active = self._writer = None
        self._batch.load -= 1
        self.since = self._server.now
        if self._transport is None:
            return
        if request.close or self._server.closing:
            self.close()
        elif self._ready and not self._serving:
            self._serve()

    def responding(self, request: Request) -> bool:
        """True while the body of a request's response comes in pieces."""
        return self._active is request and self._writer is not None

    def serves(self, request: Request) -> bool:
        """True until a request is answered or its client has gone."""
        return self._active is request

    def abort(self) -> None:
        """Break the connection."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """Close once what has been written has left."""
        if self._transport is not None:
            self._batch.flush()
            self._transport.close()

    def close_if_idle(self) -> None:
        """Close unless a request is being served."""
        if self._active is None:
            self.close()

    def check(self, now: float) -> None:
        """Enforce the time limits; called about once a second."""
        limits, transport = self._server.limits, self._transport
        if transport is None:
            return
        waited = now - self.since
        stalled = self.write_paused and (
            waited > limits.write_stall_seconds or transport.get_write_buffer_size() > limits.write_buffer_bytes
        )
        if stalled or (self._refused and self._active is None and waited > LINGER_SECONDS):
            transport.abort()
        elif self._next is not None:
            if self._is_late(now):
                self._refuse(408, b"the request took too long to arrive")
        elif self._active is None and waited > limits.idle_seconds:
            transport.close()

    def _is_late(self, now: float) -> bool:
        """True for a request that has been arriving for too long; a large body is granted more time."""
        if self._next is not self._watched:
            self._watched, self._watched_since = self._next, now
        granted = self._server.limits.request_seconds + self._size / LEAST_BYTES_PER_SECOND
        return now - self._watched_since > granted


class HttpServer:
    """Listens on one port. `handler` is called for each request, inside the event loop, and must not block."""

    def __init__(self, handler: Handler, limits: HttpLimits | None = None) -> None:
        self.handler = handler
        self.limits = limits or HttpLimits()
        self.batch = batch_of(asyncio.get_running_loop())
        self.closing = False
        self.now = 0.0
        self._connections: set[ServerConnection] = set()
        self._servers: list[asyncio.Server] = []
        self._sweep: asyncio.TimerHandle | None = None
        self._emptied: asyncio.Future[None] | None = None

    async def start(self, host: str, port: int) -> list[tuple[str, int]]:
        """Listen. Returns the addresses, with the port the system chose for 0. Raises `OSError`."""
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        server = await loop.create_server(lambda: ServerConnection(self), host, port, backlog=1024)
        self._servers.append(server)
        self._tick()
        return [(str(sock.getsockname()[0]), int(sock.getsockname()[1])) for sock in server.sockets]

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        self.now = loop.time()
        for connection in list(self._connections):
            connection.check(self.now)
        self._sweep = loop.call_later(1.0, self._tick)

    def admit(self, connection: ServerConnection) -> bool:
        """Count a new connection; False where there are too many."""
        if len(self._connections) >= self.limits.connections:
            return False
        self._connections.add(connection)
        return True

    def leave(self, connection: ServerConnection) -> None:
        """A connection is gone."""
        self._connections.discard(connection)
        if self._emptied is not None and not self._connections and not self._emptied.done():
            self._emptied.set_result(None)

    def stop_accepting(self) -> None:
        """Take no new connections or requests; those being served go on."""
        self.closing = True
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.close_if_idle()

    async def close(self, grace: float = CLOSE_SECONDS) -> None:
        """End everything; what has been written gets `grace` seconds to leave."""
        self.stop_accepting()
        if self._sweep is not None:
            self._sweep.cancel()
        for connection in list(self._connections):
            connection.close()
        if self._connections:
            self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.wait((self._emptied,), timeout=grace)
        for connection in list(self._connections):
            connection.abort()
