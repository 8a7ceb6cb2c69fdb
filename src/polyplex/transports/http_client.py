"""A small HTTP/1.1 client: pooled keep-alive connections to one origin, callbacks instead of tasks, llhttp for parsing.

A body of known length is counted, not parsed: it goes into one preallocated buffer, or through as it arrives.
"""

import asyncio
import socket
import ssl
import time
from collections import deque
from typing import Final, Protocol, cast

import httptools

from polyplex.transports.batch import batch_of
from polyplex.transports.heads import SMALL_BYTES, HeadCache
from polyplex.transports.proxy import Route, open_tunnel

RECEIVE_BYTES: Final = 256 * 1024
MAX_CONNECTIONS: Final = 256
RESERVED_CONNECTIONS: Final = 16
MAX_HEADER_BYTES: Final = 64 * 1024
# What may be read in one go before everything else gets a turn.
TURN_SECONDS: Final = 0.001
_received: Final = bytearray(RECEIVE_BYTES)
_view: Final = memoryview(_received)


class HttpFailure(Exception):
    """The exchange failed. `sent` tells whether the request may have reached the server."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class Sink(Protocol):
    """Takes one response. Exactly one of `on_body`, `on_end` and `on_failure` ends it.

    `connection` is set when the request is sent, for whoever wants to abort it.
    """

    connection: "Connection | None"

    def on_head(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """The head came. True asks for the body as it arrives, False for the whole."""
        ...

    def on_data(self, data: bytes) -> None:
        """A piece of a body that was asked for as it arrives."""
        ...

    def on_end(self) -> None:
        """The end of such a body."""
        ...

    def on_body(self, body: bytes | bytearray) -> None:
        """The whole body."""
        ...

    def on_failure(self, error: HttpFailure) -> None:
        """No response, or a body cut short."""
        ...


class Connection(asyncio.BufferedProtocol):
    """One connection, one exchange at a time."""

    def __init__(self, pool: "HttpPool") -> None:
        self._pool = pool
        self._transport: asyncio.Transport | None = None
        self._sink: Sink | None = None
        self._batch = pool.batch
        self._heads: HeadCache[tuple[int, dict[bytes, bytes]]] = HeadCache()
        self._unread = self._resting = False
        self._whole_message = b""
        self._reset()

    def _reset(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._paused = False
        self._keep_alive = False
        self._reset_fields()

    # -- the exchange
    def start(self, head: bytes, body: bytes, sink: Sink) -> None:
        """Send a request; `sink` takes the response."""
        self._sink = sink
        self._unread = True
        sink.connection = self
        transport = cast("asyncio.Transport", self._transport)
        if len(body) < 65536:
            self._batch.write(transport, head + body)
        else:
            self._batch.flush()
            transport.writelines((head, body))

    @property
    def open(self) -> bool:
        """False once the connection is closing."""
        return self._transport is not None and not self._transport.is_closing()

    def pause(self) -> None:
        """Stop reading: the taker is slower."""
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = True
            if not self._resting:
                self._transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
        if self._paused and self._transport is not None and not self._transport.is_closing():
            self._paused = False
            if not self._resting:
                self._transport.resume_reading()

    def _rest(self) -> None:
        """Read on in the next round only: while there is data, the event loop would read many times in a row."""
        if self._paused or self._resting or self._transport is None or self._transport.is_closing():
            return
        self._resting = True
        self._transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._rested)

    def _rested(self) -> None:
        self._resting = False
        if not self._paused and self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection; an exchange under way fails."""
        self._batch.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Give up the exchange; its sink hears nothing more."""
        self._sink = None
        if self._transport is not None:
            self._transport.abort()

    # -- asyncio
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Part of asyncio's protocol interface."""
        self._transport = cast("asyncio.Transport", transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family != getattr(socket, "AF_UNIX", None):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Part of asyncio's protocol interface. All connections share one buffer; whole bodies have their own."""
        if self._whole is not None:
            return memoryview(self._whole)[len(self._whole) - self._left :]
        return _view

    def buffer_updated(self, nbytes: int) -> None:
        """Part of asyncio's protocol interface."""
        if self._sink is None:
            self.abort()  # an answer that nobody asked for must not be taken for that to the next request
            return
        if self._counted:
            self._count(nbytes)
            return
        if self._unread and nbytes <= SMALL_BYTES:
            self._whole_message = bytes(_view[:nbytes])
            found = self._heads.find(self._whole_message)
            if found is not None:
                self._known(*found[0], found[1])
                return
        self._unread = False
        began = time.perf_counter()
        try:
            self._parser.feed_data(_view[:nbytes])
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._unreadable(error)
            return
        if self._complete:
            self._finish()
            return
        if time.perf_counter() - began > TURN_SECONDS:
            self._rest()
        self._whole_message = b""
        self._barren += nbytes
        if self._barren > MAX_HEADER_BYTES + RECEIVE_BYTES:
            self._fail("the headers of the answer are too large")
        elif self._length >= 0 and self._status:
            self._count_from_here()

    def _known(self, status: int, headers: dict[bytes, bytes], body: bytes) -> None:
        """A small response whose head has been parsed before."""
        sink = cast("Sink", self._sink)
        streaming = sink.on_head(status, headers)
        if streaming:
            sink.on_data(body)
        if self._sink is None:
            return  # it has given the exchange up
        self._sink = None
        if self._paused:
            self.resume()
        self._pool.release(self)
        if streaming:
            sink.on_end()
        else:
            sink.on_body(body)

    def _unreadable(self, error: Exception) -> None:
        if self._complete:
            self._keep_alive = False
            self._finish()
        else:
            self._fail(f"the server does not speak HTTP: {error}")

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's protocol interface."""
        self._transport = None
        self._pool.forget(self)
        if self._sink is None:
            return
        if self._status and self._length < 0 and b"transfer-encoding" not in self._headers and exc is None:
            self._keep_alive = False
            self._finish()
        else:
            reason = (
                "the connection closed in the middle of the answer"
                if self._status or self._barren
                else "the connection closed before an answer"
            )
            self._fail(f"{reason}{f': {exc}' if exc else ''}")

    def eof_received(self) -> None:
        """Part of asyncio's protocol interface."""

    # -- llhttp
    def on_message_begin(self) -> None:
        """Part of llhttp's callback interface."""
        if self._complete:
            self._keep_alive, self._headers = False, {}  # where the answer to a next request begins is unknown

    def on_header(self, name: bytes, value: bytes) -> None:
        """Part of llhttp's callback interface."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > MAX_HEADER_BYTES:
            raise ValueError("headers too large")
        self._headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        """Part of llhttp's callback interface."""
        status = self._parser.get_status_code()
        if 100 <= status < 200:
            return
        if self._complete:
            raise ValueError("a second answer to one request")
        self._status = status
        self._keep_alive = self._parser.should_keep_alive()
        length = self._headers.get(b"content-length")
        if length is not None and b"transfer-encoding" not in self._headers and length.isdigit():
            self._length = int(length)
        if self._sink is not None:
            self._streaming = self._sink.on_head(status, self._headers)

    def on_body(self, body: bytes) -> None:
        """Part of llhttp's callback interface."""
        self._barren = 0
        if self._streaming:
            if self._sink is not None:
                self._sink.on_data(body)
        else:
            self._parts.append(body)
        if self._length >= 0:
            self._left += len(body)

    def on_message_complete(self) -> None:
        """Part of llhttp's callback interface."""
        if self._status:
            self._complete = True
        else:
            self._headers = {}

    # -- bodies of known length
    def _count_from_here(self) -> None:
        self._left = self._length - self._left
        self._counted = True
        if self._streaming:
            return
        whole = bytearray(self._length)
        position = 0
        for part in self._parts:
            whole[position : position + len(part)] = part
            position += len(part)
        self._whole, self._parts = whole, []

    def _count(self, nbytes: int) -> None:
        extra = nbytes - self._left
        if extra > 0:
            self._keep_alive = False
            nbytes = self._left
        self._left -= nbytes
        if self._streaming and self._sink is not None:
            self._sink.on_data(bytes(_view[:nbytes]))
        if self._left == 0:
            self._finish()

    def _finish(self) -> None:
        sink, self._sink = self._sink, None
        whole, parts, streaming = self._whole, self._parts, self._streaming
        self.resume()
        if self._whole_message:
            self._remember()
        if self._keep_alive and self.open:
            if self._counted:
                self._reset()
            else:
                parser = self._parser
                self._reset_fields()
                self._parser = parser
            self._pool.release(self)
        elif self._transport is not None:
            self._transport.close()
        if sink is None:
            return
        if streaming:
            sink.on_end()
        elif whole is not None:
            sink.on_body(whole)
        else:
            sink.on_body(parts[0] if len(parts) == 1 else b"".join(parts))

    def _remember(self) -> None:
        """A plain response that came whole: the next with the same head need not be parsed."""
        if self._keep_alive and self._length >= 0 and 200 <= self._status < 300:
            self._heads.remember(self._whole_message, self._length, (self._status, self._headers))
        self._whole_message = b""

    def _reset_fields(self) -> None:
        self._status = 0
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._length = -1
        self._counted = False
        self._left = 0
        self._whole: bytearray | None = None
        self._parts: list[bytes] = []
        self._streaming = False
        self._complete = False
        self._barren = 0

    def _fail(self, message: str) -> None:
        sink, self._sink = self._sink, None
        if self._transport is not None:
            self._transport.abort()
        if sink is not None:
            sink.on_failure(HttpFailure(message, sent=True))


class HttpPool:
    """Connections to one origin. `route` says where to dial and whether TLS or a proxy is in between."""

    def __init__(self, route: Route, context: ssl.SSLContext | None, connect_timeout: float) -> None:
        self.route = route
        self._context = context
        self._connect_timeout = connect_timeout
        self._idle: list[Connection] = []
        self._all: set[Connection] = set()
        self._opening: dict[asyncio.Task[None], Sink] = {}
        self._waiting: deque[tuple[bytes, bytes, Sink]] = deque()
        self._urgent: deque[tuple[bytes, bytes, Sink]] = deque()
        self._cancelled: set[Sink] = set()
        self._closed = False
        self.batch = batch_of(asyncio.get_running_loop())

    def request(self, head: bytes, body: bytes, sink: Sink, *, urgent: bool = False) -> None:
        """Send a request on an idle connection, or on a new one, or queue it when all are taken.

        An `urgent` one is what a request under way may be waiting for, such as the answer to a question of the
        server's: it has connections beyond the limit, or those that are taken might never become free.
        """
        while self._idle:
            connection = self._idle.pop()
            if connection.open:
                connection.start(head, body, sink)
                return
        if self._closed:
            sink.on_failure(HttpFailure("the client is closed", sent=False))
        elif not self._room(urgent):
            (self._urgent if urgent else self._waiting).append((head, body, sink))
        else:
            task = asyncio.get_running_loop().create_task(self._open(head, body, sink))
            self._opening[task] = sink
            task.add_done_callback(self._opened)

    def withdraw(self, sink: Sink) -> None:
        """The sink of a request that has not been started wants nothing any more."""
        self._cancelled.add(sink)

    async def _open(self, head: bytes, body: bytes, sink: Sink) -> None:
        try:
            connection = await self._connect()
        except (OSError, UnicodeError) as error:  # the latter for what cannot be a host name
            self._opening.pop(cast("asyncio.Task[None]", asyncio.current_task()), None)
            if sink in self._cancelled:
                self._cancelled.discard(sink)
            else:
                sink.on_failure(HttpFailure(self.route.explain(error), sent=False))
            return
        self._opening.pop(cast("asyncio.Task[None]", asyncio.current_task()), None)
        if sink in self._cancelled:
            self._cancelled.discard(sink)
            self.release(connection)
        elif connection.open:
            connection.start(head, body, sink)
        else:
            sink.on_failure(HttpFailure("the connection closed before an answer", sent=False))

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        route = self.route
        async with asyncio.timeout(self._connect_timeout):
            if route.tunnel:
                transport, connection = await open_tunnel(loop, route, self._context, lambda: Connection(self))
            else:
                name = route.host if self._context is not None else None
                transport, connection = await loop.create_connection(
                    lambda: Connection(self), *route.dial, ssl=self._context, server_hostname=name
                )
        if not transport.is_closing():
            self._all.add(connection)
        return connection

    def _opened(self, task: asyncio.Task[None]) -> None:
        self._opening.pop(task, None)
        self._start_waiting()

    def release(self, connection: Connection) -> None:
        """The connection is free again."""
        beyond = len(self._all) + len(self._opening) > MAX_CONNECTIONS
        waiting = self._next(self._urgent) if self._urgent else None
        if waiting is None and self._waiting and not beyond:
            waiting = self._next(self._waiting)
        if waiting is not None:
            connection.start(*waiting)
        elif beyond:
            connection.close()
        else:
            self._idle.append(connection)

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._start_waiting()

    def _start_waiting(self) -> None:
        """There is room for another connection."""
        for queue, urgent in ((self._urgent, True), (self._waiting, False)):
            while queue and self._room(urgent) and not self._closed:
                waiting = self._next(queue)
                if waiting is not None:
                    self.request(*waiting, urgent=urgent)

    def _room(self, urgent: bool) -> bool:
        return len(self._all) + len(self._opening) < MAX_CONNECTIONS + (RESERVED_CONNECTIONS if urgent else 0)

    def _next(self, queue: "deque[tuple[bytes, bytes, Sink]]") -> tuple[bytes, bytes, Sink] | None:
        """The first request of a queue that is still wanted."""
        while queue:
            waiting = queue.popleft()
            if waiting[2] not in self._cancelled:
                return waiting
            self._cancelled.discard(waiting[2])
        return None

    def close(self) -> None:
        """Close all connections; exchanges under way fail."""
        self._closed = True
        for task in list(self._opening):
            task.cancel()
        for connection in list(self._all):
            connection.close()
        sinks = [*self._opening.values(), *(sink for _, _, sink in (*self._urgent, *self._waiting))]
        self._urgent.clear()
        self._waiting.clear()
        for sink in sinks:
            if sink not in self._cancelled:
                sink.on_failure(HttpFailure("the client is closed", sent=False))
        self._cancelled.clear()
