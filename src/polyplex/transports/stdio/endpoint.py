"""Our own stdin and stdout as a transport: the server half of stdio.

Protocol bytes leave through a duplicate of file descriptor 1, while 1 itself becomes stderr: no stray print, of ours or
of a library, can break into the protocol. Pipes and sockets are served by the event loop. Files cannot be, and ttys
must not be (the loop would make them non-blocking for every process that shares them): these get a thread each way.
"""

import asyncio
import contextlib
import os
import select
import stat
import sys
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Final

from polyplex.transports.stdio.pipes import (
    HIGH_WATER_BYTES,
    LOW_WATER_BYTES,
    MAX_FRAME_BYTES,
    FrameReader,
    FrameWriter,
    one_line,
)

READ_BYTES: Final = 256 << 10


class StdioEndpointTransport:
    """Frames over stdin and stdout. `on_eof` comes once, after the last frame: the client has closed its end.

    Both callbacks are plain functions, called on the event loop, and must not block.
    """

    def __init__(
        self,
        on_frame: Callable[[bytes], None],
        on_eof: Callable[[], None],
        max_frame_bytes: int = MAX_FRAME_BYTES,
        *,
        stdin_fd: int = 0,
        stdout_fd: int = 1,
        stderr_fd: int = 2,
    ) -> None:
        self._stdin_fd, self._stdout_fd, self._stderr_fd = stdin_fd, stdout_fd, stderr_fd
        self._reader = FrameReader(on_frame, on_eof, max_frame_bytes)
        self._writer: FrameWriter | ThreadWriter | None = None
        self._thread_reader: ThreadReader | None = None
        self._source = -1

    @property
    def buffered_bytes(self) -> int:
        """Bytes written that the client's pipe has not taken yet."""
        return 0 if self._writer is None else self._writer.buffered_bytes

    @property
    def discarded_frames(self) -> int:
        """How many frames were longer than `max_frame_bytes` and thrown away."""
        return self._reader.discarded

    async def start(self) -> None:
        """Take stdout away from everybody else, and read and write from now on."""
        output = self._claim_stdout()
        shared = _same_file(self._stdin_fd, output)
        await self._open_output(output, threaded=shared or not _fits_event_loop(output))
        source = self._source = os.dup(self._stdin_fd)
        if shared or not _fits_event_loop(source):
            self._thread_reader = ThreadReader(source, self._reader)
            self._thread_reader.start()
        else:
            loop = asyncio.get_running_loop()
            await loop.connect_read_pipe(lambda: self._reader, os.fdopen(source, "rb", buffering=0))

    def write(self, frame: bytes) -> bool:
        """Send one frame (the newline is added). Returns False, with nothing sent, when the client is gone."""
        return self._writer is not None and self._writer.write(frame)

    def write_parts(self, parts: Sequence[bytes]) -> bool:
        """Send one large frame that is given in parts. Returns as `write` does."""
        return self._writer is not None and self._writer.write_parts(parts)

    async def drain(self) -> None:
        """Wait while more than 1 MiB waits for the client to read it; returns at once when the client is gone."""
        if self._writer is not None:
            await self._writer.drain()

    def pause_reading(self) -> None:
        """Read no more of stdin; at most what has been read already still comes."""
        self._reader.pause()
        if self._thread_reader is not None:
            self._thread_reader.pause()

    def resume_reading(self) -> None:
        """Read again."""
        self._reader.resume()
        if self._thread_reader is not None:
            self._thread_reader.resume()

    def hung_up(self) -> bool:
        """Whether nobody can write to stdin any more. While reading is paused, `on_eof` does not tell."""
        poll = select.poll()
        poll.register(self._source, 0)
        return any(events & select.POLLHUP for _, events in poll.poll(0))

    async def close(self, grace: float = 2.0) -> None:
        """Send what is buffered, in at most `grace` seconds, and close both ways. `on_eof` comes if it has not yet."""
        if self._thread_reader is not None:
            self._thread_reader.close()
        self._reader.close()
        if self._writer is None:
            return
        self._writer.close()
        try:
            async with asyncio.timeout(grace):
                await self._writer.wait_closed()
        except TimeoutError:
            self._writer.abort()

    def _claim_stdout(self) -> int:
        """Return a duplicate of stdout, and let stdout itself lead to stderr."""
        # What was printed before belongs to stderr as well, so it is flushed only after the switch.
        output = os.dup(self._stdout_fd)
        # Started without stderr, its number may by now be that of anything.
        nowhere = os.open(os.devnull, os.O_WRONLY) if sys.__stderr__ is None else -1
        os.dup2(self._stderr_fd if nowhere < 0 else nowhere, self._stdout_fd)
        if nowhere >= 0:
            os.close(nowhere)
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()
        return output

    async def _open_output(self, output: int, *, threaded: bool) -> None:
        if threaded:
            self._writer = ThreadWriter(output)
            self._writer.start()
            return
        writer = FrameWriter()
        loop = asyncio.get_running_loop()
        await loop.connect_write_pipe(lambda: writer, os.fdopen(output, "wb", buffering=0))
        self._writer = writer


def _fits_event_loop(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _same_file(one: int, other: int) -> bool:
    """Whether both descriptors are one socket, as under inetd: the loop cannot have it as two pipes."""
    return stat.S_ISSOCK(os.fstat(one).st_mode) and os.path.sameopenfile(one, other)


class ThreadReader:
    """Reads a blocking descriptor in a thread of its own; a chunk is read when the one before it has been used."""

    def __init__(self, fd: int, reader: FrameReader) -> None:
        self._fd, self._reader = fd, reader
        self._loop = asyncio.get_running_loop()
        self._may_read = threading.Semaphore(1)
        self._paused = self._waiting = self._closed = False

    def start(self) -> None:
        """Begin to read."""
        # A daemon: a read of a tty cannot be interrupted, and must not keep the process from ending.
        threading.Thread(target=self._run, name="stdin", daemon=True).start()

    def pause(self) -> None:
        """Let the thread wait after the chunk it is reading."""
        self._paused = True

    def resume(self) -> None:
        """Let the thread read on."""
        self._paused = False
        if self._waiting:
            self._waiting = False
            self._may_read.release()

    def close(self) -> None:
        """Deliver nothing any more."""
        self._closed = True
        self.resume()

    def _run(self) -> None:
        while True:
            self._may_read.acquire()
            try:
                data = b"" if self._closed else os.read(self._fd, READ_BYTES)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._receive, data)
            except RuntimeError:  # the loop has been closed
                data = b""
            if not data:
                os.close(self._fd)
                return

    def _receive(self, data: bytes) -> None:
        if self._closed or not data:
            self._reader.close()
            self._may_read.release()
            return
        self._reader.data_received(data)
        if self._paused:
            self._waiting = True
        else:
            self._may_read.release()


class ThreadWriter:
    """Writes to a blocking descriptor in a thread of its own; otherwise as FrameWriter."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[bytes | None] = SimpleQueue()
        self._writable = asyncio.Event()
        self._writable.set()
        self._lost = asyncio.Event()
        self._closing = False
        self.buffered_bytes = 0

    def start(self) -> None:
        """Begin to write."""
        threading.Thread(target=self._run, name="stdout", daemon=True).start()

    def write(self, frame: bytes) -> bool:
        """Send `frame` and a newline. Returns False, having sent nothing, when the descriptor is closed."""
        if self._closing:
            return False
        data = one_line(frame) + b"\n"
        self.buffered_bytes += len(data)
        if self.buffered_bytes > HIGH_WATER_BYTES:
            self._writable.clear()
        self._queue.put(data)
        return True

    def write_parts(self, parts: Sequence[bytes]) -> bool:
        """Send one frame that is given in parts."""
        return self.write(b"".join(parts))

    async def drain(self) -> None:
        """Wait until more may be written; returns at once when the descriptor is closed."""
        await self._writable.wait()

    def close(self) -> None:
        """Close after what is buffered has been written."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)

    def abort(self) -> None:
        """Wait no longer. A blocked write cannot be interrupted; its thread ends with the process."""
        self._finish()

    async def wait_closed(self) -> None:
        """Wait until all has been written."""
        await self._lost.wait()

    def _run(self) -> None:
        try:
            while (data := self._queue.get()) is not None:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
                self._loop.call_soon_threadsafe(self._written, len(data))
        except (OSError, RuntimeError):  # the client is gone, or the loop is closed
            pass
        os.close(self._fd)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._finish)

    def _written(self, size: int) -> None:
        self.buffered_bytes -= size
        if self.buffered_bytes <= LOW_WATER_BYTES:
            self._writable.set()

    def _finish(self) -> None:
        self._closing = True
        self.buffered_bytes = 0
        self._writable.set()
        self._lost.set()
