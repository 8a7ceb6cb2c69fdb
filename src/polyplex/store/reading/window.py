"""A payload as those see it who read parts of it: bytes at any place, a block of them at a time, for a limited time."""

import threading
import time
from typing import Final, Protocol

from polyplex.errors import PayloadQueryError

BLOCK_BYTES: Final = 256 * 1024
UTF8_SEQUENCE: Final = 4


class Readable(Protocol):
    """What is read: as `place.Source`."""

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes from `offset` on, fewer than `length` only at the end."""
        ...


class Watch:
    """How long work in a thread may go on. The caller may lose interest before."""

    def __init__(self, seconds: float) -> None:
        self._ends = time.monotonic() + seconds
        self._stopped = threading.Event()

    def stop(self) -> None:
        """Nobody waits any more."""
        self._stopped.set()

    @property
    def over(self) -> bool:
        """Whether the time is up, or nobody waits."""
        return self._stopped.is_set() or time.monotonic() > self._ends

    def check(self) -> None:
        """Raises `PayloadQueryError` where the time is up."""
        if self.over:
            raise PayloadQueryError(
                "this takes too long over a payload of that size. Lines and pages go on counting where they stopped if "
                "asked again; other parts are had by offset and limit, or by grep, which goes on by its cursor"
            )


class Window:
    """`size` bytes, of which one block is held."""

    def __init__(self, source: Readable, size: int, watch: Watch, block_bytes: int = BLOCK_BYTES) -> None:
        self.size, self.watch = size, watch
        self._source, self.block_bytes = source, block_bytes
        self.block, self.base = b"", 0

    def load(self, offset: int) -> bytes:
        """Hold the block that begins here, and give it; empty at the end. Raises `PayloadQueryError` out of time."""
        if self.base != offset or not self.block:
            self.watch.check()
            self.block, self.base = self._source.read_at(offset, self.block_bytes), offset
        return self.block

    def at(self, offset: int) -> int:
        """One byte; -1 at the end."""
        index = offset - self.base
        if not 0 <= index < len(self.block):
            if offset >= self.size:
                return -1
            self.load(offset)
            index = 0
        return self.block[index]

    def read(self, start: int, end: int) -> bytes:
        """Some bytes, from the block where it has them."""
        start, end = max(0, start), min(end, self.size)
        if start >= end:
            return b""
        if self.base <= start and end <= self.base + len(self.block):
            return self.block[start - self.base : end - self.base]
        return self._source.read_at(start, end - start)


def first_whole(data: bytes) -> int:
    """How many bytes to leave out at the start, so that no UTF-8 sequence is cut there."""
    start = 0
    while start < min(len(data), UTF8_SEQUENCE - 1) and data[start] & 0xC0 == 0x80:
        start += 1
    return start


def last_whole(data: bytes) -> int:
    """How many bytes to keep, so that no UTF-8 sequence is cut at the end."""
    for back in range(1, min(len(data), UTF8_SEQUENCE) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 1 if byte < 0x80 else 2 if byte >> 5 == 6 else 3 if byte >> 4 == 14 else 4 if byte >> 3 == 30 else 1
        return len(data) if needed <= back else len(data) - back
    return len(data)  # no UTF-8 at all


def whole_text(data: bytes) -> str:
    """Bytes as text; what is no UTF-8 becomes U+FFFD."""
    return data.decode("utf-8", "replace")
