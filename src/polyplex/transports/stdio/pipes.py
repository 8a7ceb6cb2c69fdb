"""Frames over pipes, for both halves of the stdio transport: a reader, a writer, and pipes of a useful size."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, cast

from polyplex.protocol.framing import LineDecoder
from polyplex.transports.batch import batch_of

PIPE_BYTES: Final = 1 << 20
MAX_FRAME_BYTES: Final = 256 << 20
HIGH_WATER_BYTES: Final = 1 << 20
LOW_WATER_BYTES: Final = 256 << 10

# What may be read in one go before everything else gets a turn.
TURN_SECONDS: Final = 0.001

# Up to here one copy is cheaper than a second buffer to write.
JOINED_FRAME_BYTES: Final = 64 << 10

# fcntl.F_SETPIPE_SZ, which Python names on Linux only.
SET_PIPE_SIZE: Final = 1031


def open_pipe(*, large: bool) -> tuple[int, int]:
    """Return the read and the write end of a new pipe, closed on exec; `large` asks for 1 MiB where that can be had."""
    read_end, write_end = os.pipe()
    if large and sys.platform == "linux":
        import fcntl

        # Over the user's quota of pipe memory: the usual 64 KiB work as well, only slower.
        with contextlib.suppress(OSError):
            fcntl.fcntl(write_end, SET_PIPE_SIZE, PIPE_BYTES)
    return read_end, write_end


def one_line(frame: bytes) -> bytes:
    """Return `frame` without raw line ends. In JSON they are white space between tokens, never part of a value."""
    if b"\n" in frame or b"\r" in frame:
        return frame.replace(b"\n", b" ").replace(b"\r", b" ")
    return frame


def read_rest(transport: asyncio.ReadTransport, receive: Callable[[bytes], None]) -> None:
    """Read what a pipe still holds, without waiting for its end, and not more than fits into one."""
    rest = PIPE_BYTES
    # A closing transport has read all; its descriptor may be that of another already.
    while rest > 0 and not transport.is_closing():
        try:
            data = os.read(transport.get_extra_info("pipe").fileno(), rest)
        except OSError:
            return
        if not data:
            return
        receive(data)
        rest -= len(data)


class FrameReader(asyncio.Protocol):
    """Calls `on_frame` for each frame read and `on_closed` once after the last.

    After `pause` the frames of the chunk already read (at most 256 KiB) still come.
    """

    def __init__(self, on_frame: Callable[[bytes], None], on_closed: Callable[[], None], max_frame_bytes: int) -> None:
        self._on_frame, self._on_closed = on_frame, on_closed
        self._decoder = LineDecoder(max_frame_bytes)
        self._transport: asyncio.ReadTransport | None = None
        self._closed = self._resting = False
        self.paused = False

    @property
    def discarded(self) -> int:
        """How many frames were too long and thrown away."""
        return self._decoder.discarded

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.ReadTransport", transport)
        if self.paused:
            # Not at once: uvloop begins to read after this call.
            asyncio.get_running_loop().call_soon(self._transport.pause_reading)

    def data_received(self, data: bytes) -> None:
        began = time.perf_counter()
        for frame in self._decoder.feed(data):
            self._deliver(frame)
        if time.perf_counter() - began > TURN_SECONDS:
            self._rest()

    def _rest(self) -> None:
        """Read on in the next round only: while there is data, the event loop would read many times in a row."""
        if self._transport is None or self._resting or self.paused or self._closed:
            return
        self._resting = True
        self._transport.pause_reading()
        asyncio.get_running_loop().call_soon(self._rested)

    def _rested(self) -> None:
        self._resting = False
        if self._transport is not None and not self.paused and not self._closed:
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.close()

    def pause(self) -> None:
        """Read no more until `resume`; the other side will feel it when its pipe is full."""
        if not self.paused and not self._closed and self._transport is not None and not self._resting:
            self._transport.pause_reading()
        self.paused = True

    def resume(self) -> None:
        """Read again."""
        if self.paused and not self._closed and self._transport is not None and not self._resting:
            self._transport.resume_reading()
        self.paused = False

    def read_rest(self) -> None:
        """Deliver what the pipe holds now, paused or not, and close."""
        if self._transport is not None:
            read_rest(self._transport, self.data_received)
        self.close()

    def close(self) -> None:
        """Deliver a last line that had no end, report the end, and stop reading."""
        if self._closed:
            return
        self._closed = True
        if rest := self._decoder.close():
            self._deliver(rest)
        if self._transport is not None:
            self._transport.close()
        self._on_closed()

    def _deliver(self, frame: bytes) -> None:
        try:
            self._on_frame(frame)
        except Exception as error:  # noqa: BLE001 - whatever the owner did wrong
            # One frame that cannot be handled must not end the connection for the others.
            context = {"message": "a frame could not be handled", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


class FrameWriter(asyncio.BaseProtocol):
    """Writes frames to a pipe. `drain` waits while more than 1 MiB is buffered."""

    def __init__(self, on_closed: Callable[[], None] | None = None) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._on_closed = on_closed
        self._batch = batch_of(asyncio.get_running_loop())
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = asyncio.Event()

    @property
    def closed(self) -> bool:
        """Whether a frame written now would get lost."""
        return self._transport is None or self._transport.is_closing()

    @property
    def buffered_bytes(self) -> int:
        """Bytes accepted that the operating system has not taken yet."""
        return 0 if self._transport is None or self._lost.is_set() else self._transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)
        self._transport.set_write_buffer_limits(HIGH_WATER_BYTES, LOW_WATER_BYTES)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._writable.set()
        self._lost.set()
        if self._on_closed is not None:
            self._on_closed()

    def write(self, frame: bytes) -> bool:
        """Send `frame` and a newline. Returns False, having sent nothing, when the pipe is closed."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        frame = one_line(frame)
        if len(frame) <= JOINED_FRAME_BYTES:
            self._batch.write(transport, frame + b"\n")
        else:
            self._batch.flush()
            transport.write(frame)
            transport.write(b"\n")
        return True

    def write_parts(self, parts: Sequence[bytes]) -> bool:
        """Send one large frame that is given in parts, without joining them."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return False
        self._batch.flush()
        for part in parts:
            transport.write(one_line(part))
        transport.write(b"\n")
        return True

    async def drain(self) -> None:
        """Wait until more may be written; returns at once when the pipe is closed."""
        self._batch.flush()
        if not self._writable.is_set():
            await self._writable.wait()

    def close(self) -> None:
        """Close after what is buffered has been sent."""
        self._batch.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None and not self._lost.is_set():
            self._transport.abort()

    async def wait_closed(self) -> None:
        """Wait until the pipe is closed."""
        if self._transport is not None:
            await self._lost.wait()
