"""Event streams (WHATWG HTML, 9.2), decoded and encoded on bytes. Sans-IO: whoever reads the bytes calls `feed`.

Differs from a browser in one point: an event that carries an id or a retry is reported although its data is empty,
because MCP servers prime a stream with such an event (2025-11-25, Streamable HTTP).
"""

from dataclasses import dataclass
from typing import Final

from polyplex.errors import LocalProtocolError, RemoteProtocolError
from polyplex.protocol.framing import ByteOrderMarkFilter, PendingLine

DEFAULT_EVENT: Final = b"message"
COMMENT: Final = b": keep-alive\n\n"

# Ten digits of milliseconds are 115 days; more is noise, and unbounded digits are not safe to convert.
MAX_RETRY_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class SseEvent:
    """One event. `id` and `retry` (milliseconds) are those of this event alone, `None` where it had none."""

    event: bytes
    data: bytes
    id: bytes | None = None
    retry: int | None = None


class SseDecoder:
    """Incremental decoder of one stream; lines end in LF, CRLF or CR, and chunks may cut anywhere.

    An event, or a single line, of more than `max_event_bytes` raises RemoteProtocolError; the stream is then useless.
    An event whose blank line never comes is dropped, as the standard has it.
    """

    __slots__ = ("_data", "_event", "_id", "_mark", "_max_bytes", "_pending", "_retry", "_size", "_skip_newline")

    def __init__(self, max_event_bytes: int) -> None:
        self._max_bytes = max_event_bytes
        self._mark: ByteOrderMarkFilter | None = ByteOrderMarkFilter()
        self._pending = PendingLine()
        self._skip_newline = False
        self._data: list[bytes] = []
        self._size = 0
        self._event = b""
        self._id: bytes | None = None
        self._retry: int | None = None

    def feed(self, data: bytes) -> list[SseEvent]:
        """Return the events that `data` completes.

        Raises RemoteProtocolError when an event is larger than allowed.
        """
        if self._mark is not None:
            data = self._mark.feed(data)
            if self._mark.done:
                self._mark = None
        lines = self._split(data)
        rest = lines.pop()
        events: list[SseEvent] = []
        if lines and self._pending.size:
            self._finish_pending(lines.pop(0))
        for line in lines:
            if line:
                self._read_field(line)
            elif (event := self._take_event()) is not None:
                events.append(event)
        if rest:
            self._check_line(self._pending.size + len(rest))
            self._pending.append(rest)
        return events

    def _split(self, data: bytes) -> list[bytes]:
        if self._skip_newline and data:
            self._skip_newline = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._skip_newline = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return data.split(b"\n")

    def _finish_pending(self, tail: bytes) -> None:
        self._check_line(self._pending.size + len(tail))
        if self._pending.starts_with(b"data: "):
            # The field name is cut off before the parts are joined: a large value is copied once only.
            self._add_data(self._pending.take(tail, prefix=b"data: "))
        else:
            self._read_field(self._pending.take(tail))

    def _read_field(self, line: bytes) -> None:
        self._check_line(len(line))
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._add_data(value)
        elif name == b"event":
            self._event = value
        elif name == b"id":
            if b"\0" not in value:
                self._id = value
        elif name == b"retry" and value.isdigit() and len(value) <= MAX_RETRY_DIGITS:
            self._retry = int(value)

    def _add_data(self, value: bytes) -> None:
        if self._size + len(value) > self._max_bytes:
            raise self._too_large()
        self._size += len(value) + 1
        self._data.append(value)

    def _check_line(self, length: int) -> None:
        # A line has its field name still, which is no part of the event.
        if self._size + length > self._max_bytes + len(b"data: "):
            raise self._too_large()

    def _too_large(self) -> RemoteProtocolError:
        return RemoteProtocolError(f"an event of the stream is larger than {self._max_bytes} bytes")

    def _take_event(self) -> SseEvent | None:
        data, event, id, retry = self._data, self._event, self._id, self._retry
        if not data and id is None and retry is None:
            self._event = b""
            return None
        self._data, self._size, self._event, self._id, self._retry = [], 0, b"", None, None
        value = data[0] if len(data) == 1 else b"\n".join(data)
        return SseEvent(event or DEFAULT_EVENT, value, id, retry)


def encode_event(
    data: bytes, *, event: bytes | None = DEFAULT_EVENT, id: bytes | None = None, retry: int | None = None
) -> bytes:
    """Return one event with its blank line. Data of several lines, whatever their ends, becomes several data fields.

    Raises LocalProtocolError for an event name or id that cannot be written on one line.
    """
    head = b""
    if event is not None:
        head = b"event: %b\n" % _one_line(event)
    if id is not None:
        head += b"id: %b\n" % _one_line(id)
    if retry is not None:
        head += b"retry: %d\n" % retry
    if b"\n" in data or b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    return b"%bdata: %b\n\n" % (head, data)


def _one_line(value: bytes) -> bytes:
    if b"\n" in value or b"\r" in value or b"\0" in value:
        raise LocalProtocolError(f"{value[:80]!r} cannot be the name or id of an event")
    return value
