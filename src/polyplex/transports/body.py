"""A large HTTP body that is still arriving: handed on piece by piece, with back-pressure, never held whole."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

PEEK_BYTES: Final = 2048
PIECE_BYTES: Final = 256 * 1024
Piece = bytes | memoryview


class Source(Protocol):
    """Where the bytes come from."""

    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def abort(self) -> None: ...


class BodyStream:
    """The rest of a body after `head`; `length` counts both, in bytes.

    The source stays paused until `attach` says where the bytes go. After that `on_data` is called for each piece,
    then `on_end` once with None or with the error that cut the body short.
    """

    __slots__ = ("_on_data", "_on_end", "_outcome", "_pieces", "_source", "ended", "length")

    def __init__(self, source: Source, head: Piece, length: int) -> None:
        self.length = length
        self.ended = False
        self._source = source
        self._pieces: list[Piece] = [head] if len(head) else []
        self._outcome: Exception | None = None
        self._on_data: Callable[[Piece], None] | None = None
        self._on_end: Callable[[Exception | None], None] | None = None
        source.pause()

    def begins_with(self, *marks: bytes) -> bool:
        """True where one of the texts is near the beginning."""
        if not self._pieces:
            return False
        head = bytes(self._pieces[0][:PEEK_BYTES])
        return any(mark in head for mark in marks)

    def feed(self, data: Piece) -> None:
        """Called by the source for each piece."""
        if self._on_data is not None:
            self._on_data(data)
        else:
            self._pieces.append(data)

    def finish(self, error: Exception | None) -> None:
        """Called by the source once, at the end."""
        self.ended, self._outcome = True, error
        if self._on_end is not None:
            on_end, self._on_end, self._on_data = self._on_end, None, None
            on_end(error)

    def attach(self, on_data: Callable[[Piece], None], on_end: Callable[[Exception | None], None]) -> None:
        """Let the bytes flow."""
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            on_data(piece)
        if self.ended:
            on_end(self._outcome)
            return
        self._on_data, self._on_end = on_data, on_end
        self._source.resume()

    def pause(self) -> None:
        """Stop the source for now: the reader is slower."""
        if not self.ended:
            self._source.pause()

    def resume(self) -> None:
        """Let the source go on."""
        if not self.ended:
            self._source.resume()

    def abort(self) -> None:
        """Give the rest up."""
        if not self.ended:
            self._on_data = self._on_end = None
            self._source.abort()

    async def read(self) -> bytes:
        """The whole body, for a reader that needs it whole. Raises what cut it short."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        whole = bytearray()

        def end(error: Exception | None) -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        self.attach(whole.extend, end)
        try:
            await done
        except asyncio.CancelledError:
            self.abort()
            raise
        return bytes(whole)


class _Memory:
    """A source that has everything already, and hands it out in pieces."""

    __slots__ = ("_paused", "_position", "_view", "stream")

    def __init__(self, view: memoryview) -> None:
        self.stream: BodyStream
        self._view = view
        self._position = 0
        self._paused = True

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        while not self._paused and self._position < len(self._view):
            start = self._position
            self._position = min(start + PIECE_BYTES, len(self._view))
            self.stream.feed(self._view[start : self._position])
        if not self._paused and not self.stream.ended:
            self.stream.feed(b"}")
            self.stream.finish(None)

    def abort(self) -> None:
        self._paused, self._position = True, len(self._view)


def stream_of(result: memoryview) -> BodyStream:
    """A large result that is in memory as a stream: it is never copied whole. Its last byte closes the envelope."""
    source = _Memory(result)
    source.stream = BodyStream(source, b"", len(result) + 1)
    return source.stream
