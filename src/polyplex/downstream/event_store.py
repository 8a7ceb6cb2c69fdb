"""The event logs of this process: small recent events in memory, the rest in the state database, all of it bounded.

Nothing is written while memory has room, and the event loop never waits for the disk: a frame that is on its way to
the database stays in memory until it is there. Sizes count what an event costs besides its frame.
"""

import asyncio
import secrets
from collections import OrderedDict
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from polyplex.downstream.event_log import EventLog, Missed, event_id

if TYPE_CHECKING:
    from polyplex.store.frames import FrameStore

EVENTS: Final = 50_000
SESSION_EVENTS: Final = 2048
SESSION_SHARE: Final = 8
STREAMS: Final = 2048
LARGE_BYTES: Final = 64 * 1024
PAGE_BYTES: Final = 1024 * 1024
EVENT_COST: Final = 700
DELETED_AT_ONCE: Final = 500


class EventOptions(msgspec.Struct, frozen=True):
    """Bounds over all sessions; one session gets an eighth of the bytes. Without a database, memory is all there is."""

    max_bytes: int = 256 * 1024 * 1024
    memory_bytes: int = 32 * 1024 * 1024
    max_age_seconds: float = 600.0
    database: Path | None = None


class _Stream:
    __slots__ = ("events", "finished", "last", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.last = 0
        self.finished = False
        self.events: dict[int, _Event] = {}


class _Event:
    """`frame` is None once it is in the database; `stored` is true from when it is on its way there."""

    __slots__ = ("frame", "instead", "log", "made", "number", "serial", "size", "stored", "stream")

    def __init__(
        self, log: "StoredEventLog", stream: _Stream, number: int, frame: bytes, instead: bytes | None
    ) -> None:
        self.log = log
        self.stream = stream
        self.number = number
        self.instead = instead
        self.size = 0
        self.serial = 0
        self.made = 0.0
        self.stored = False
        self.frame: bytes | None = frame


_Events = OrderedDict[int, _Event]


class _Order:
    """Events from the oldest to the newest: `notices` may go, `owed` go last."""

    __slots__ = ("nbytes", "notices", "owed")

    def __init__(self) -> None:
        self.notices: _Events = OrderedDict()
        self.owed: _Events = OrderedDict()
        self.nbytes = 0

    def add(self, event: _Event) -> None:
        (self.notices if event.instead is None else self.owed)[event.serial] = event
        self.nbytes += event.size

    def remove(self, event: _Event) -> None:
        del (self.notices if event.instead is None else self.owed)[event.serial]
        self.nbytes -= event.size

    def __len__(self) -> int:
        return len(self.notices) + len(self.owed)

    @property
    def first(self) -> _Event:
        """Whose turn it is to go."""
        return next(iter((self.notices or self.owed).values()))


class EventStore:
    """Makes the logs and keeps what is in them."""

    def __init__(self, options: EventOptions) -> None:
        self._options = options
        self._loop = asyncio.get_running_loop()
        self._database = options.database
        self._frames: FrameStore | None = None
        self._all = _Order()
        self._resident: _Events = OrderedDict()
        self._resident_bytes = 0
        self._on_their_way = 0
        self._deleted: list[int] = []
        self._serial = 0
        self._swept = False

    def open_log(self) -> EventLog:
        """A log for a new session."""
        return StoredEventLog(self)

    def tick(self, now: float) -> None:
        """Let go what is too old."""
        oldest = now - self._options.max_age_seconds
        for events in (self._all.notices, self._all.owed):
            while events and (event := next(iter(events.values()))).made < oldest:
                self.evict(event)
        self._delete()
        if not self._swept and self._database is not None and self._database.exists():
            frames = self._disk()
            if frames is not None:
                frames.sweep()
        self._swept = True

    async def close(self) -> None:
        """Delete everything from the database."""
        self._database = None
        frames, self._frames = self._frames, None
        if frames is not None:
            await asyncio.wrap_future(frames.close())

    @property
    def _disk_keeps_up(self) -> bool:
        return self._database is not None and self._on_their_way <= self._options.memory_bytes

    def _disk(self) -> "FrameStore | None":
        """The frames in the database; nothing is loaded or opened before there is something to write."""
        if self._frames is None and self._database is not None:
            from polyplex.store.frames import FrameStore

            self._frames = FrameStore(self._database)
        return self._frames

    # -- what logs call
    async def read(self, serials: list[int]) -> dict[int, bytes]:
        """Frames that are in the database; those that cannot be had are missing."""
        if self._frames is None:
            return {}
        return await asyncio.wrap_future(self._frames.read(serials))

    def keep(self, event: _Event) -> None:
        """Take in a new event, and make room for it."""
        self._add(event)
        bytes_each, order = self._options.max_bytes // SESSION_SHARE, event.log.order
        while len(order) > 1 and (order.nbytes > bytes_each or len(order) > SESSION_EVENTS):
            self.evict(order.first)
        while len(self._all) > 1 and (self._all.nbytes > self._options.max_bytes or len(self._all) > EVENTS):
            self.evict(self._all.first)
        if event.size > LARGE_BYTES and event.serial in self._resident and self._disk_keeps_up:
            self._write([event])
        if self._resident_bytes > self._options.memory_bytes:
            self._relieve()

    def evict(self, event: _Event) -> None:
        """Let an event go; what is to take its place does."""
        instead = event.instead
        self.remove(event)
        if instead:
            event.frame, event.instead, event.stored = instead, None, False
            self._add(event)
        else:
            del event.stream.events[event.number]

    def remove(self, event: _Event) -> None:
        """Take an event out of every order, but not out of its stream."""
        self._all.remove(event)
        event.log.order.remove(event)
        if self._resident.pop(event.serial, None) is not None:
            self._resident_bytes -= event.size
        elif event.stored:
            self._deleted.append(event.serial)
            if len(self._deleted) >= DELETED_AT_ONCE:
                self._delete()

    def _add(self, event: _Event) -> None:
        self._serial += 1
        event.serial, event.made = self._serial, self._loop.time()
        event.size = EVENT_COST + len(event.frame or b"") + len(event.instead or b"")
        self._all.add(event)
        event.log.order.add(event)
        self._resident[event.serial] = event
        self._resident_bytes += event.size

    def _delete(self) -> None:
        if self._deleted and self._frames is not None:
            self._frames.delete(self._deleted)
        self._deleted = []

    # -- memory
    def _relieve(self) -> None:
        """Memory is full: the older half goes to the database, or goes altogether where that does not keep up."""
        goal = self._options.memory_bytes // 2
        if self._disk_keeps_up:
            batch: list[_Event] = []
            surplus = self._resident_bytes - goal
            for event in self._resident.values():
                if surplus <= 0:
                    break
                batch.append(event)
                surplus -= event.size
            self._write(batch)
            return
        while self._resident_bytes > self._options.memory_bytes and len(self._resident) > 1:
            oldest = next(iter(self._resident.values()))
            self.evict(next((event for event in self._resident.values() if event.instead is None), oldest))

    def _write(self, batch: list[_Event]) -> None:
        disk = self._disk()
        if disk is None:
            return
        frames = [(event.serial, event.frame or b"") for event in batch]
        size = sum(event.size for event in batch)
        for event in batch:
            del self._resident[event.serial]
            event.stored = True
        self._resident_bytes -= size
        self._on_their_way += size

        def written(done: "Future[bool]") -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._written, batch, frames, size, done.result())

        disk.write(frames, 2 * self._options.max_age_seconds).add_done_callback(written)

    def _written(self, batch: list[_Event], frames: list[tuple[int, bytes]], size: int, kept: bool) -> None:
        self._on_their_way -= size
        kept = kept and self._frames is not None
        held = [
            event
            for event, (serial, _) in zip(batch, frames, strict=True)
            if event.serial == serial and event.stream.events.get(event.number) is event
        ]
        for event in held:
            if kept:
                event.frame = None
        if kept:
            return
        if self._frames is not None:
            self._frames.close()
            self._frames = self._database = None  # the database is of no use: from now on memory is all there is
        for event in reversed(held):
            event.stored = False
            self._resident[event.serial] = event
            self._resident.move_to_end(event.serial, last=False)
            self._resident_bytes += event.size
        if self._resident_bytes > self._options.memory_bytes:
            self._relieve()


class StoredEventLog:
    """The log of one session. Implements `EventLog`."""

    def __init__(self, store: EventStore) -> None:
        self.order = _Order()
        self._store = store
        self._tag = secrets.token_hex(5)
        self._opened = 0
        self._closed = False
        self._general = f"{self._tag}g"
        self._streams = {self._general: _Stream(self._general)}

    @property
    def general(self) -> str:
        """The name of the session's general stream."""
        return self._general

    def open_stream(self) -> str:
        """A name for a new stream."""
        self._opened += 1
        name = f"{self._tag}c{self._opened}"
        self._streams[name] = _Stream(name)
        if len(self._streams) > STREAMS:
            self._forget_stream()
        return name

    def _forget_stream(self) -> None:
        """The oldest that is finished; those that are open are bounded by the calls of a session."""
        stream = next((each for each in self._streams.values() if each.finished), None)
        if stream is not None:
            del self._streams[stream.name]
            for event in stream.events.values():
                self._store.remove(event)
            stream.events = {}

    def append(self, stream: str, frame: bytes, instead: bytes | None = None) -> bytes:
        """Remember a frame; returns its event id."""
        held = self._streams[stream]
        number = held.last = held.last + 1
        if not self._closed:
            event = held.events[number] = _Event(self, held, number, frame, instead)
            self._store.keep(event)
        return event_id(stream, number)

    def latest(self, stream: str) -> bytes:
        """The id of the last event of a stream, or of its start."""
        held = self._streams.get(stream)
        return event_id(stream, 0 if held is None else held.last)

    def finish(self, stream: str) -> None:
        """No more events will come on a stream."""
        held = self._streams.get(stream)
        if held is not None:
            held.finished = True

    def is_own(self, event_id: str) -> bool:
        """True where this session may have given out the id."""
        return event_id.startswith(self._tag)

    async def stream_of(self, event_id: str) -> str | None:
        """The stream of an event."""
        name, _, text = event_id.rpartition("-")
        stream = self._streams.get(name)
        if stream is None or not text.isascii() or not text.isdecimal() or len(text) > 12 or int(text) > stream.last:
            return None
        return name

    async def after(self, stream: str, event_id: bytes) -> Missed:
        """What came on a stream after an event of it, a page of it."""
        held = self._streams.get(stream)
        start = int(event_id.rpartition(b"-")[2])
        if held is None:
            return Missed([], event_id, 0)
        page, end = _page(held, start)
        absent = [serial for _, serial, frame, _ in page if frame is None]
        found = await self._store.read(absent) if absent else {}
        events = [
            (_event_id(stream, number), whole)
            for number, serial, frame, instead in page
            if (whole := frame or found.get(serial) or instead)
        ]
        return Missed(events, _event_id(stream, end), end - start - len(events))

    def close(self) -> None:
        """Forget everything."""
        self._closed = True
        for stream in self._streams.values():
            for event in stream.events.values():
                self._store.remove(event)
            stream.events = {}


_event_id = event_id


def _page(stream: _Stream, start: int) -> tuple[list[tuple[int, int, bytes | None, bytes | None]], int]:
    """Number, serial, frame and `instead` of what fits a page after `start`, and up to where that tells everything."""
    page: list[tuple[int, int, bytes | None, bytes | None]] = []
    size = 0
    for event in stream.events.values():
        if event.number > start:
            if size > PAGE_BYTES:
                return page, page[-1][0]
            page.append((event.number, event.serial, event.frame, event.instead))
            size += event.size
    return page, stream.last
