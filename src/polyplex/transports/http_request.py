"""One request that the HTTP server has taken in, and the ways to answer it."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol
from urllib.parse import unquote

JOIN_BYTES: Final = 64 * 1024
REASONS: Final = {status.value: f"{status.value} {status.phrase}".encode() for status in HTTPStatus}
_JSON_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_LAST_CHUNK: Final = b"0\r\n\r\n"


class Responder(Protocol):
    """What a request needs of its connection. `since` is the loop time of its last sign of life."""

    write_paused: bool
    since: float

    def respond(self, request: "Request", head: bytes, parts: tuple[bytes, ...]) -> None:
        """Write a whole response."""
        ...

    def begin(self, request: "Request", head: bytes, writer: "ResponseWriter") -> None:
        """Write the head of a response whose body comes in pieces."""
        ...

    def write(self, parts: "tuple[bytes | memoryview, ...]") -> None:
        """Write a piece of such a body."""
        ...

    def finish(self, request: "Request") -> None:
        """The response is written."""
        ...

    def responding(self, request: "Request") -> bool:
        """True while the body of the response comes in pieces."""
        ...

    def serves(self, request: "Request") -> bool:
        """True until a request is answered or its client has gone."""
        ...

    def abort(self) -> None:
        """Break the connection."""
        ...


class Request:
    """One request with its whole body. Exactly one `respond*` call answers it."""

    method = ""
    target = ""
    headers: dict[str, str]
    duplicate: str | None = None
    body = b""
    close = False
    answered = False
    on_disconnect: Callable[[], None] | None = None

    def __init__(self, connection: Responder) -> None:
        self._connection = connection

    @property
    def path(self) -> str:
        """The decoded path without the query."""
        return unquote(self.target.partition("?")[0])

    @property
    def query(self) -> str:
        """The raw query."""
        return self.target.partition("?")[2]

    @property
    def connection(self) -> Responder:
        """The connection it came on."""
        return self._connection

    def respond_json(self, parts: tuple[bytes, ...]) -> None:
        """200 with a JSON body given in parts."""
        size = sum(map(len, parts))
        head = _JSON_HEAD % size
        self._connection.respond(self, head, parts if size > JOIN_BYTES else (b"".join(parts),))

    def respond(
        self, status: int, body: bytes = b"", content_type: bytes = b"application/json", extra: bytes = b""
    ) -> None:
        """Any answer with a whole body. `extra` holds more header lines, each with its line end."""
        kind = b"Content-Type: %b\r\n" % content_type if body else b""
        head = b"HTTP/1.1 %b\r\n%bContent-Length: %d\r\n%b\r\n" % (REASONS[status], kind, len(body), extra)
        self._connection.respond(self, head, (body,) if body and self.method != "HEAD" else ())

    def fail(self) -> None:
        """500, or a broken connection where the response has begun already."""
        if self._connection.responding(self):
            self._connection.abort()
        else:
            self.respond(500, b"polyplex failed; its log says more", b"text/plain")

    def respond_sized(self, length: int, start: bytes = b"") -> "ResponseWriter":
        """200 with a JSON body of known length that arrives in pieces, the first of which is `start`."""
        writer = ResponseWriter(self, chunked=False)
        self._connection.begin(self, _JSON_HEAD % length + start, writer)
        return writer

    def respond_events(self, extra: bytes = b"") -> "ResponseWriter":
        """200 with an event stream."""
        writer = ResponseWriter(self, chunked=True)
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache, no-transform\r\n"
            b"X-Accel-Buffering: no\r\nTransfer-Encoding: chunked\r\n%b\r\n" % extra
        )
        self._connection.begin(self, head, writer)
        return writer


class ResponseWriter:
    """Writes a body in pieces. `on_writable` is called when a full buffer has drained."""

    __slots__ = ("_chunked", "_connection", "_request", "closed", "on_writable")

    def __init__(self, request: Request, *, chunked: bool) -> None:
        self._request = request
        self._connection = request.connection
        self._chunked = chunked
        self.closed = False
        self.on_writable: Callable[[], None] | None = None

    @property
    def full(self) -> bool:
        """True while the client takes the bytes more slowly than they come."""
        return self._connection.write_paused

    def write(self, data: bytes | memoryview) -> None:
        """Write a piece; after the client went away this does nothing."""
        if self.closed or not len(data):
            return
        self._connection.write((b"%x\r\n" % len(data), data, b"\r\n") if self._chunked else (data,))

    def end(self) -> None:
        """The body is complete."""
        if self.closed:
            return
        self.closed = True
        if self._chunked:
            self._connection.write((_LAST_CHUNK,))
        self._connection.finish(self._request)

    def abort(self) -> None:
        """The body cannot be completed: break the connection so that the client knows."""
        if not self.closed:
            self.closed = True
            self._connection.abort()


def head_without_offer(request: Request) -> bytes:
    """The head of a request that offers to change the protocol, without that offer."""
    headers = {name: value for name, value in request.headers.items() if name not in ("upgrade", "connection")}
    if "close" in request.headers.get("connection", "").lower():
        headers["connection"] = "close"
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{request.method} {request.target} HTTP/1.1\r\n{lines}\r\n".encode("latin-1")
