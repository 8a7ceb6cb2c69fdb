"""One event stream that a client can take up again: what goes into the log, and to the client while it is connected."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from polyplex.downstream.event_log import EventLog
from polyplex.protocol.revisions import R2025_11_25
from polyplex.protocol.sse import encode_event
from polyplex.transports.http_request import Request, ResponseWriter

log = logging.getLogger("polyplex.downstream")
RETRY_MS: Final = 1000
_LOST: Final = b": events that are no longer kept: %d\n\n"


class LoggedStream:
    """A stream by its name in the log. It outlives the connections that carry it; the newest one has it."""

    __slots__ = ("_ended", "_log", "_loop", "_moved", "_replay", "name", "writer")

    def __init__(self, log: EventLog, name: str) -> None:
        self.name = name
        self.writer: ResponseWriter | None = None
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._replay: asyncio.Task[None] | None = None
        self._moved: asyncio.Event | None = None
        self._ended = False

    @property
    def connected(self) -> bool:
        """True while a client is connected."""
        return self.writer is not None and not self.writer.closed

    def send(self, frame: bytes, instead: bytes | None = None) -> None:
        """Write a frame of one line; `instead` as in `EventLog.append`."""
        identifier = self._log.append(self.name, frame, instead)
        if self._replay is None and self.writer is not None:
            self.writer.write(encode_event(frame, id=identifier))

    def carry(self, writer: ResponseWriter) -> None:
        """The stream goes on here, from now on."""
        self._leave()
        self.writer = writer

    def prime(self, revision: str, retry_ms: int = RETRY_MS, position: bytes | None = None) -> None:
        """Tell the client where it is, so that it can come again before the next event, and when (2025-11-25)."""
        if revision >= R2025_11_25 and self.writer is not None:
            identifier = self._log.latest(self.name) if position is None else position
            self.writer.write(encode_event(b"", event=None, id=identifier, retry=retry_ms))

    def take_up(
        self, request: Request, writer: ResponseWriter, position: bytes, reached: Callable[[], None] | None = None
    ) -> None:
        """The stream goes on here, from the event `position`: what came since first, `reached()`, then what comes."""
        self.carry(writer)
        moved = self._moved = asyncio.Event()
        writer.on_writable = request.on_disconnect = moved.set
        self._replay = self._loop.create_task(self._catch_up(writer, position, moved, reached))

    async def _catch_up(
        self, writer: ResponseWriter, position: bytes, moved: asyncio.Event, reached: Callable[[], None] | None
    ) -> None:
        while not writer.closed and position != self._log.latest(self.name):
            missed = await self._log.after(self.name, position)
            if missed.lost:
                log.info("a client came for %d events that are no longer kept", missed.lost)
                writer.write(_LOST % missed.lost)
            for identifier, frame in missed.events:
                writer.write(encode_event(frame, id=identifier))
            if missed.position == position:
                break
            position = missed.position
            while writer.full and not writer.closed:
                moved.clear()
                await moved.wait()
        self._replay = None
        if reached is not None:
            reached()
        if self._ended:
            writer.end()

    def end(self) -> None:
        """All has been said."""
        self._ended = True
        self._log.finish(self.name)
        if self._replay is None and self.writer is not None:
            self.writer.end()

    def close(self) -> None:
        """End the connection, not the stream."""
        self._leave()

    def _leave(self) -> None:
        if self._replay is not None:
            self._replay.cancel()
            self._replay = None
        if self.writer is not None:
            self.writer.end()
