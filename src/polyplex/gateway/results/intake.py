"""A large result is stored while it streams in: what is held at one time does not depend on its size."""

import asyncio
import contextlib
import logging
from collections import deque
from typing import Final, NamedTuple

from polyplex.content import kinds
from polyplex.errors import PayloadError, RemoteProtocolError
from polyplex.gateway.results.counting import Counter
from polyplex.gateway.results.keeper import HEAD_BYTES, JSON, PREVIEWED_BYTES, TAIL_BYTES, Keeper, Part, shape_of
from polyplex.gateway.results.limits import Limits
from polyplex.gateway.results.scanner import Begin, Event, Kind, Piece, Scanner
from polyplex.store.writer import PayloadWriter
from polyplex.transports.body import BodyStream
from polyplex.transports.body import Piece as Data

log = logging.getLogger("polyplex.gateway")
HIGH_BYTES: Final = 1024 * 1024
LOW_BYTES: Final = 256 * 1024
FEED_BYTES: Final = 256 * 1024
REMEMBERED_BYTES: Final = 8 * 1024 * 1024
SPARE_BYTES: Final = 64 * 1024 * 1024
MAX_WHOLE_BYTES: Final = 64 * 1024 * 1024


class Spare:
    """The memory that the beginnings of streams may take, all of them together, in case they cannot be stored."""

    def __init__(self) -> None:
        self.left = SPARE_BYTES


class TakenApart(NamedTuple):
    """What stayed of a result, and its parts by the marks that stand for them; `members` went out whole."""

    kept: bytes
    parts: dict[str, Part]
    members: dict[str, str]


class _Growing:
    """A part on its way into the store."""

    def __init__(self, writer: PayloadWriter, begin: Begin, tokens: int) -> None:
        self.writer = writer
        self._begin, self._tokens = begin, tokens
        self._media_type = JSON if begin.kind is Kind.JSON else ""
        self._counter: Counter | None = None
        self._head = bytearray()
        self._tail = b""

    async def write(self, data: bytes) -> None:
        """The next bytes."""
        if len(self._head) < HEAD_BYTES:
            self._head += data[: HEAD_BYTES - len(self._head)]
        self._tail = data[-TAIL_BYTES:] if len(data) >= TAIL_BYTES else (self._tail + data)[-TAIL_BYTES:]
        if self._counter is None:
            self._media_type = self._media_type or kinds.sniff(data[:PREVIEWED_BYTES], self._begin.media_type)
            self._counter = Counter(self._media_type)
        self._counter.feed(data)
        await self.writer.write(data)

    async def commit(self) -> Part:
        """Make it a payload. Raises `PayloadError`."""
        media_type = self._media_type or kinds.sniff(b"", self._begin.media_type)
        payload = await self.writer.commit(media_type)
        head, counted = bytes(self._head), None if self._counter is None else self._counter.records
        shape = shape_of(head, self._tail, media_type, payload.size, self._tokens, counted)
        return Part(payload, head, self._tail, shape)


class Intake:
    """Takes one stream apart. Texts and data over the limit become payloads of `owner`."""

    def __init__(
        self,
        stream: BodyStream,
        keeper: Keeper,
        owner: str,
        origin: str,
        limits: Limits,
        spare: Spare | None = None,
    ) -> None:
        self._stream = stream
        self._spare = spare
        self._remembered: list[bytes] = []
        self._remembered_bytes = 0
        self._keeper, self._owner, self._origin = keeper, owner, origin
        self._scanner = Scanner(limits.apart, self._new_mark)
        self._tokens = limits.preview_tokens
        self._begun: deque[PayloadWriter] = deque()
        self._growing: _Growing | None = None
        self._parts: dict[str, Part] = {}
        self._stored_bytes = 0
        self._chunks: deque[bytes] = deque()
        self._waiting = 0
        self._paused = self._over = False
        self._error: Exception | None = None
        self._news = asyncio.Event()

    async def run(self, idle_seconds: float) -> TakenApart:
        """Read to the end. Raises what cut the stream short, `TimeoutError` where nothing comes for so long,
        `RemoteProtocolError` for what cannot be taken apart, and `PayloadError`; then no payload is left.

        After the last two `whole` may go on; it has to be called where there is a `spare`."""
        self._stream.attach(self._came, self._ended)
        try:
            while (chunk := await self._next(idle_seconds)) is not None:
                self._remember(chunk)
                for event in self._scanner.feed(chunk):
                    await self._handle(event)
                await asyncio.sleep(0)  # a source that is in memory gives nobody else a turn
            self._scanner.close()
        except BaseException as error:
            if self._spare is None or not isinstance(error, PayloadError | RemoteProtocolError):
                self._forget()
                self._stream.abort()
            await self._withdraw()
            raise
        self._forget()
        return TakenApart(bytes(self._scanner.kept), self._parts, self._scanner.members)

    async def whole(self, idle_seconds: float) -> bytes | None:
        """All of a stream that `run` could not store; None, and it is given up, where its beginning is gone by now.

        Raises what cuts it short, and `TimeoutError`.
        """
        try:
            if self._spare is None or self._stream.length > MAX_WHOLE_BYTES:
                return None
            pieces = list(self._remembered)
            while (chunk := await self._next(idle_seconds)) is not None:
                pieces.append(chunk)
            return b"".join(pieces)
        finally:
            self._forget()
            self._stream.abort()

    def _remember(self, chunk: bytes) -> None:
        if self._spare is None:
            return
        self._remembered_bytes += len(chunk)
        self._spare.left -= len(chunk)
        self._remembered.append(chunk)
        if self._remembered_bytes > REMEMBERED_BYTES or self._spare.left < 0:
            self._forget()

    def _forget(self) -> None:
        if self._spare is not None:
            self._spare.left += self._remembered_bytes
        self._spare, self._remembered, self._remembered_bytes = None, [], 0

    # -- the stream
    def _came(self, data: Data) -> None:
        self._chunks.append(bytes(data))  # the piece lies in a buffer that is used again
        self._waiting += len(data)
        if self._waiting > HIGH_BYTES and not self._paused:
            self._paused = True
            self._stream.pause()
        self._news.set()

    def _ended(self, error: Exception | None) -> None:
        self._over, self._error = True, error
        self._news.set()

    async def _next(self, idle_seconds: float) -> bytes | None:
        while not self._chunks:
            if self._error is not None:
                raise self._error
            if self._over:
                return None
            self._news.clear()
            async with asyncio.timeout(idle_seconds):
                await self._news.wait()
        chunks = [self._chunks.popleft()]
        size = len(chunks[0])
        while self._chunks and size + len(self._chunks[0]) <= FEED_BYTES:
            chunks.append(self._chunks.popleft())
            size += len(chunks[-1])
        self._waiting -= size
        if self._paused and self._waiting < LOW_BYTES:
            self._paused = False
            self._stream.resume()
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    # -- the parts
    def _new_mark(self) -> str:
        writer = self._keeper.writer(self._owner, self._origin)
        self._begun.append(writer)
        return writer.uri

    async def _handle(self, event: Event) -> None:
        if isinstance(event, Begin):
            self._growing = _Growing(self._begun.popleft(), event, self._tokens)
            return
        if self._growing is None:
            return
        if isinstance(event, Piece):
            self._stored_bytes += len(event.data)
            self._keeper.store.check(self._stored_bytes)  # or the last would push out the first of the same result
            await self._growing.write(event.data)
            return
        part = await self._growing.commit()
        self._parts[part.payload.uri], self._growing = part, None

    async def _withdraw(self) -> None:
        """Nobody will be told of the parts."""
        writers = [*self._begun, *([] if self._growing is None else [self._growing.writer])]
        with contextlib.suppress(PayloadError):
            for writer in writers:
                await writer.abort()
            for part in self._parts.values():
                await self._keeper.store.delete(self._owner, part.payload.id)
