"""Events that were sent on a session's streams, for a client that takes a broken stream up again.

Resumption exists from 2025-03-26 to 2025-11-25 ("Resumability and Redelivery"). An event id names its stream and its
place in it; a client is never given another stream's events.
"""

from collections import deque
from typing import Final, Protocol

MAX_EVENTS: Final = 512
MAX_BYTES: Final = 8 * 1024 * 1024
GENERAL: Final = "g"


class EventLog(Protocol):
    """What endpoints need of a log; one for each session."""

    def open_stream(self) -> str:
        """A name for a new stream."""
        ...

    def append(self, stream: str, frame: bytes) -> bytes:
        """Remember a frame; returns its event id."""
        ...

    def latest(self, stream: str) -> bytes:
        """The id of the last event of a stream, or of its start."""
        ...

    def after(self, event_id: str) -> tuple[str, list[tuple[bytes, bytes]]] | None:
        """The stream of an event and what was sent on it afterwards, as ids and frames; None for a made-up id."""
        ...


class MemoryEventLog:
    """In memory, bounded by number and bytes; the oldest events go first.

    Events are numbered through all streams, so that one that was forgotten and goes on repeats no id.
    """

    __slots__ = ("_bytes", "_events", "_last", "_number", "_streams")

    def __init__(self) -> None:
        self._events: deque[tuple[str, int, bytes]] = deque()
        self._bytes = 0
        self._streams = 0
        self._number = 0
        self._last: dict[str, int] = {GENERAL: 0}

    def open_stream(self) -> str:
        """A name for a new stream."""
        self._streams += 1
        name = f"c{self._streams}"
        self._note(name, 0)
        return name

    def _note(self, stream: str, number: int) -> None:
        self._last.pop(stream, None)
        self._last[stream] = number
        if len(self._last) > MAX_EVENTS:
            del self._last[next(key for key in self._last if key != GENERAL)]

    def append(self, stream: str, frame: bytes) -> bytes:
        """Remember a frame; returns its event id."""
        number = self._number = self._number + 1
        self._note(stream, number)
        self._events.append((stream, number, frame))
        self._bytes += len(frame)
        while len(self._events) > MAX_EVENTS or (self._bytes > MAX_BYTES and len(self._events) > 1):
            self._bytes -= len(self._events.popleft()[2])
        return event_id(stream, number)

    def latest(self, stream: str) -> bytes:
        """The id of the last event of a stream, or of its start."""
        return event_id(stream, self._last.get(stream, 0))

    def after(self, event_id: str) -> tuple[str, list[tuple[bytes, bytes]]] | None:
        """The stream of an event and what was sent on it afterwards."""
        stream, _, text = event_id.rpartition("-")
        if stream not in self._last or not text.isdecimal() or len(text) > 12 or int(text) > self._last[stream]:
            return None
        return stream, [
            (b"%b-%d" % (name.encode(), number), frame)
            for name, number, frame in self._events
            if name == stream and number > int(text)
        ]


def event_id(stream: str, number: int) -> bytes:
    """The id of an event; number 0 stands for the start of the stream."""
    return f"{stream}-{number}".encode()
