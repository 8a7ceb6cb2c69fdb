"""Cuts a byte stream into frames, one per line. Sans-IO: whoever reads the bytes calls `feed`.

Time is linear in the bytes fed, whatever the chunking: an unfinished line is kept as parts and joined once.
"""

from typing import Final

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

# A smaller part is copied into the part before it: a line fed byte by byte must not cost an object for each.
SMALL_PART_BYTES: Final = 4096
JOINED_PART_BYTES: Final = 65536


class ByteOrderMarkFilter:
    """Removes one byte order mark from the start of a stream, also when chunks cut it."""

    __slots__ = ("_held", "done")

    def __init__(self) -> None:
        self._held = b""
        self.done = False

    def feed(self, data: bytes) -> bytes:
        """Return `data` without the mark; nothing while the bytes so far may still become one."""
        data = self._held + data
        if len(data) < len(BYTE_ORDER_MARK) and BYTE_ORDER_MARK.startswith(data):
            self._held = data
            return b""
        self._held = b""
        self.done = True
        return data.removeprefix(BYTE_ORDER_MARK)

    def close(self) -> bytes:
        """Return bytes that looked like the start of a mark and were not one."""
        held, self._held = self._held, b""
        return held


class PendingLine:
    """The unfinished line at the end of what was fed, kept as parts. `size` is its length in bytes."""

    __slots__ = ("_parts", "size")

    def __init__(self) -> None:
        self._parts: list[bytes | bytearray] = []
        self.size = 0

    def append(self, part: bytes) -> None:
        """Keep `part`, which holds no line end."""
        self.size += len(part)
        if len(part) >= SMALL_PART_BYTES:
            self._parts.append(part)
            return
        last = self._parts[-1] if self._parts else None
        if isinstance(last, bytearray) and len(last) < JOINED_PART_BYTES:
            last += part
        elif part:
            self._parts.append(bytearray(part))

    def take(self, tail: bytes, *, prefix: bytes = b"") -> bytes:
        """Return the whole line, ended by `tail`, and start anew. A `prefix` it starts with is left out."""
        parts = self._parts
        if not parts:
            return tail.removeprefix(prefix)
        if prefix and parts[0].startswith(prefix):
            parts[0] = parts[0][len(prefix) :]
        parts.append(tail)
        self._parts, self.size = [], 0
        return b"".join(parts)

    def starts_with(self, prefix: bytes) -> bool:
        """Whether the first part alone shows that the line starts with `prefix`."""
        return bool(self._parts) and self._parts[0].startswith(prefix)

    def clear(self) -> None:
        """Forget the line."""
        self._parts, self.size = [], 0


class LineDecoder:
    """Frames ended by LF or CRLF, as on stdio. Empty lines are skipped, one leading byte order mark is dropped.

    A line longer than `max_bytes` (its end not counted) is thrown away up to its newline and counted in `discarded`;
    the lines after it are decoded as usual. At most `max_bytes` plus one chunk are held.
    """

    __slots__ = ("_discarding", "_mark", "_max_bytes", "_pending", "discarded")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._pending = PendingLine()
        self._mark: ByteOrderMarkFilter | None = ByteOrderMarkFilter()
        self._discarding = False
        self.discarded = 0

    @property
    def pending_bytes(self) -> int:
        """Bytes held of a line whose end has not come."""
        return self._pending.size

    def feed(self, data: bytes) -> list[bytes]:
        """Return the frames that `data` completes, without their line ends."""
        if self._mark is not None:
            data = self._strip_mark(self._mark, data)
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and (self._pending.size or self._discarding):
            lines[0] = self._finish_first(lines[0])
        if rest:
            self._hold(rest)
        if len(data) > self._max_bytes:
            lines = [self._checked(line) for line in lines]
        return [line[:-1] if line[-1] == 13 else line for line in lines if line and line != b"\r"]

    def close(self) -> bytes:
        """Return the last line when its end never came, or nothing. The stream is over."""
        if self._mark is not None:
            self._hold(self._mark.close())
        return self._finish_first(b"").removesuffix(b"\r")

    def _strip_mark(self, mark: ByteOrderMarkFilter, data: bytes) -> bytes:
        data = mark.feed(data)
        if mark.done:
            self._mark = None
        return data

    def _hold(self, rest: bytes) -> None:
        if self._discarding:
            return
        # One byte more may be held than a frame may have: it can be the CR of a CRLF.
        if self._pending.size + len(rest) > self._max_bytes + 1:
            self._pending.clear()
            self._discarding = True
            self.discarded += 1
            return
        self._pending.append(rest)

    def _finish_first(self, tail: bytes) -> bytes:
        if self._discarding:
            self._discarding = False
            return b""
        return self._checked(self._pending.take(tail))

    def _checked(self, line: bytes) -> bytes:
        if len(line) <= self._max_bytes or (len(line) == self._max_bytes + 1 and line[-1] == 13):
            return line
        self.discarded += 1
        return b""
