"""How many records a content has, counted as it passes by; None where that would cost too much to say."""

from typing import Final

import msgspec
from msgspec import Raw

from polyplex.content import kinds, records

MAX_JSON_BYTES: Final = 8 * 1024 * 1024
_FIRST_ROWS: Final = 512
_SAMPLE: Final = 4096
_TABLES: Final = (kinds.CSV, kinds.TSV)
_decode_list = msgspec.json.Decoder(list[Raw]).decode


class Counter:
    """Counts the lines of a text; in tables those that end outside of quotes. It is fed all bytes in order."""

    def __init__(self, media_type: str) -> None:
        self._media_type = media_type
        self._table = media_type in _TABLES
        self._lines = 0
        self._inside = False
        self._simple: bool | None = None
        self._last = b"\n"
        self._head = b""

    def feed(self, data: bytes) -> None:
        """The next bytes."""
        if not data:
            return
        if len(self._head) < _FIRST_ROWS:
            self._head += data[:_FIRST_ROWS]
        self._last = data[-1:]
        if not self._table or (not self._inside and b'"' not in data) or self._is_simple(data):
            self._lines += data.count(b"\n")
            return
        pieces = data.split(b'"')
        self._lines += b"".join(pieces[self._inside :: 2]).count(b"\n")
        self._inside ^= len(pieces) % 2 == 0

    def _is_simple(self, data: bytes) -> bool:
        """Where the first rows have no line end in quotes, none is expected: quotes cost more than lines to count."""
        if self._simple is None:
            self._simple = not any(b"\n" in piece for piece in data[:_SAMPLE].split(b'"')[1::2])
        return self._simple

    @property
    def records(self) -> int | None:
        """The records so far; of a table without its header."""
        lines = self._lines + (self._last != b"\n")
        if self._table:
            if self._inside:
                return None
            kind = records.record_kind(self._media_type)
            return lines - (kind is not None and records.split(self._head, kind).header is not None)
        return lines if self._media_type.startswith("text/") or self._media_type == kinds.JSON_LINES else None


def count(data: bytes, media_type: str) -> int | None:
    """The records of a content that is there as a whole."""
    if media_type == kinds.JSON:
        if len(data) > MAX_JSON_BYTES or data.lstrip()[:1] != b"[":
            return None
        try:
            return len(_decode_list(data))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
    counter = Counter(media_type)
    counter.feed(data)
    return counter.records
