"""Lines by their number. How many lines each block has is counted once, as far as somebody has read."""

import threading
from array import array
from bisect import bisect_right
from typing import Final

from polyplex.errors import PayloadQueryError
from polyplex.store.reading.parts import LinesPart
from polyplex.store.reading.window import Window, last_whole, whole_text

COUNT_ALL_BYTES: Final = 16 << 20


class LineIndex:
    """The number of newlines before each block; 8 bytes for each 256 KiB."""

    def __init__(self) -> None:
        self._before = array("Q", [0])  # newlines before the block of this number
        self._counted = 0  # bytes
        self._ends_in_newline = True
        self._lock = threading.Lock()

    def total(self, window: Window) -> int | None:
        """How many lines there are, once all have been counted."""
        if self._counted < window.size:
            return None
        return self._before[-1] + (not self._ends_in_newline)

    def count_to(self, window: Window, line: int | None) -> None:
        """Count until the line of this number (0 is the first) has begun; None counts all."""
        with self._lock:
            while self._counted < window.size and (line is None or self._before[-1] <= line):
                block = window.load(self._counted)
                self._before.append(self._before[-1] + block.count(b"\n"))
                self._ends_in_newline = block.endswith(b"\n")
                self._counted += len(block)

    def offset_of(self, window: Window, line: int) -> int:
        """Where a line (0 is the first) begins; the size where there is none."""
        self.count_to(window, line)
        with self._lock:
            number = max(0, bisect_right(self._before, line - 1) - 1) if line else 0
            if line > self._before[-1]:
                return window.size
            left = line - self._before[number]
        offset = number * window.block_bytes
        if not left:
            return offset
        block = window.load(offset)
        at = -1
        for _ in range(left):
            at = block.find(b"\n", at + 1)
        return offset + at + 1


def read_lines(window: Window, index: LineIndex, first: int, count: int, max_bytes: int) -> LinesPart:
    """`count` lines from line `first` on (1 is the first, -1 the last), as far as they fit.

    Raises `PayloadQueryError` for a line that is not there.
    """
    if first < 0 or window.size <= COUNT_ALL_BYTES:
        index.count_to(window, None)
    if first < 0:
        first = max(1, (index.total(window) or 0) + 1 + first)
    start = index.offset_of(window, first - 1)
    if start >= window.size and (first > 1 or window.size):
        raise PayloadQueryError(f"line {first} is behind the end: there are {index.total(window) or 0} lines")
    data, lines = _lines(window, start, count, max_bytes)
    cut = not data.endswith(b"\n") and start + len(data) < window.size
    if cut and lines > 1:  # leave the line that does not fit to the next part
        data, lines, cut = data[: data.rfind(b"\n") + 1], lines - 1, False
    elif cut:
        data = data[: last_whole(data)]
    end = start + len(data)
    return LinesPart(
        text=whole_text(data),
        first=first,
        count=lines,
        total=index.total(window),
        next_line=first + lines if not cut and end < window.size else None,
        offset=start,
        end=end,
        size=window.size,
        cut=cut,
        next_offset=end if cut else None,
    )


def _lines(window: Window, start: int, count: int, max_bytes: int) -> tuple[bytes, int]:
    """So many lines, the last of them perhaps not whole, and how many."""
    parts: list[bytes] = []
    offset, lines, room = start, 0, max_bytes
    while lines < count and room > 0 and offset < window.size:
        block = window.read(offset, offset + min(window.block_bytes, room))
        at = 0
        while lines < count and (newline := block.find(b"\n", at)) >= 0:
            at, lines = newline + 1, lines + 1
        parts.append(block[:at] if lines == count else block)
        offset += len(block)
        room -= len(block)
    data = b"".join(parts)
    return data, lines + (lines < count and bool(data) and not data.endswith(b"\n"))
