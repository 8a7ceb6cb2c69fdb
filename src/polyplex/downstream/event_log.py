"""Events that were sent on a session's streams, for a client that takes a broken stream up again: the interface.

Resumption exists from 2025-03-26 to 2025-11-25 ("Resumability and Redelivery"). `event_store.py` keeps events in memory
and in the state database of this process; a store that several processes share can take its place.
"""

from typing import NamedTuple, Protocol


class Missed(NamedTuple):
    """What came on a stream after some event: ids and frames in order, as many as make a page.

    `position` is the id up to which the page tells everything. `lost` events of it are no longer kept.
    """

    events: list[tuple[bytes, bytes]]
    position: bytes
    lost: int


class EventLog(Protocol):
    """The events of one session. What an implementation must keep:

    - The events of a stream keep the order in which they were appended, and each is given at most once for each
      `after`, whatever is appended meanwhile. `append` and `latest` are immediate: they wait for no disk and no peer.
    - An event id is unique in the session, names its stream, and means nothing in any other session.
    - `after` gives events of the stream of the id only, and of this session only. Events that are no longer kept are
      counted, never passed over in silence.
    - Nothing raises: what a store cannot give is lost, and counted as such.
    - It is bounded in bytes, number and age. Frames that came without `instead` go first; one that came with it (a
      response, a question) goes when nothing else is left to go, and `instead` takes its place.
    """

    @property
    def general(self) -> str:
        """The name of the session's general stream."""
        ...

    def open_stream(self) -> str:
        """A name for a new stream, that of a call."""
        ...

    def append(self, stream: str, frame: bytes, instead: bytes | None = None) -> bytes:
        """Remember a frame; returns its event id. `instead` may be empty: then nothing takes its place."""
        ...

    def latest(self, stream: str) -> bytes:
        """The id of the last event of a stream, or of its start."""
        ...

    def finish(self, stream: str) -> None:
        """No more events will come on a stream; it may be forgotten before those that are open."""
        ...

    def is_own(self, event_id: str) -> bool:
        """True where this session may have given out the id, False for another's."""
        ...

    async def stream_of(self, event_id: str) -> str | None:
        """The stream of an event; None where no such event was sent, or its stream has been forgotten."""
        ...

    async def after(self, stream: str, event_id: bytes) -> Missed:
        """What came on a stream after an event of it. All is told once `position` is that of `latest`."""
        ...

    def close(self) -> None:
        """The session has ended: forget everything, and keep nothing that is still appended."""
        ...


class EventLogs(Protocol):
    """Where the logs of all sessions come from."""

    def open_log(self) -> EventLog:
        """A log for a new session."""
        ...

    def tick(self, now: float) -> None:
        """Called every few seconds with the loop's time: let go what is too old."""
        ...

    async def close(self) -> None:
        """The endpoint has ended."""
        ...


def event_id(stream: str, number: int) -> bytes:
    """The id of an event; number 0 stands for the start of the stream."""
    return f"{stream}-{number}".encode()
