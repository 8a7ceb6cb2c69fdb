"""Splitting a content into records as it comes in: JSON arrays, JSON lines, CSV, TSV and lines.

A splitter takes chunks of any size, gives the places of the records that they end, and keeps no record itself: its
memory does not grow with the content, its time grows with nothing but the length. What lies between records is blank
lines, or the commas and whitespace of JSON.
"""

import re
from typing import Final, Literal, Protocol

from msgspec import Struct

from polyplex.content.json_records import JsonSplitter
from polyplex.content.spans import Span

RecordKind = Literal["json", "jsonl", "csv", "tsv", "lines"]
KINDS: Final[tuple[RecordKind, ...]] = ("json", "jsonl", "csv", "tsv", "lines")
_MEDIA: Final[dict[str, RecordKind]] = {
    "application/json": "json",
    "application/jsonl": "jsonl",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
}
_MARK: Final = b"\xef\xbb\xbf"
_FIRST_ROW: Final = 16_384
_DELIMITERS: Final = b",;\t|"
_QUOTED: Final = re.compile(rb'"[^"]*+"')
_NUMBER: Final = re.compile(rb"[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?%?")
_LONGEST_NAME: Final = 100


class Splitter(Protocol):
    """Takes a content in chunks of any size and gives the places of its records.

    `count` is how many were given so far; a header is none.
    """

    count: int

    @property
    def kind(self) -> RecordKind:
        """What is split."""
        ...

    @property
    def header(self) -> Span | None:
        """The header of a table."""
        ...

    @property
    def delimiter(self) -> str:
        """What is between a table's cells."""
        ...

    @property
    def key(self) -> str | None:
        """Where in a JSON object the array is."""
        ...

    @property
    def problem(self) -> str:
        """Why there are no records."""
        ...

    def feed(self, chunk: bytes) -> list[Span]:
        """The records that end in this chunk."""
        ...

    def close(self) -> list[Span]:
        """The records that end with the content."""
        ...


class Records(Struct, frozen=True):
    """The records of a whole content. `problem` says why there are none, `key` where in a JSON object the array is."""

    kind: RecordKind
    spans: list[Span]
    header: Span | None = None
    delimiter: str = ""
    key: str | None = None
    problem: str = ""


def record_kind(media_type: str) -> RecordKind | None:
    """How a media type (as `kinds.sniff` gives it) is split into records; None for what has none.

    A JSON text that is no array, and has none under a first-level key, has no records either: its splitter says so.
    """
    if media_type in _MEDIA:
        return _MEDIA[media_type]
    if media_type.endswith("+json"):
        return "json"
    return "lines" if media_type.startswith("text/") else None


def splitter(kind: RecordKind) -> Splitter:
    """A new splitter."""
    if kind == "json":
        return JsonSplitter()
    if kind in ("csv", "tsv"):
        return TableSplitter(kind)
    return LineSplitter(kind)


def split(data: bytes, kind: RecordKind) -> Records:
    """The records of a content that is there as a whole."""
    parts = splitter(kind)
    spans = parts.feed(data) + parts.close()
    return Records(kind, spans, parts.header, parts.delimiter, parts.key, parts.problem)


class LineSplitter:
    """Lines end with a newline, which belongs to them. Blank lines are records too, but not of JSON lines."""

    delimiter = ""
    key = None
    problem = ""
    header = None

    def __init__(self, kind: RecordKind = "lines") -> None:
        self.kind: RecordKind = kind
        self.count = 0
        self._blanks = kind == "lines"
        self._base = self._start = 0
        self._last = b""

    def feed(self, chunk: bytes) -> list[Span]:
        """The lines that end in this chunk."""
        spans: list[Span] = []
        base, start = self._base, self._start
        at = chunk.find(b"\n")
        while at >= 0:
            end = base + at + 1
            if self._blanks or not self._is_blank(chunk, start, end):
                spans.append(Span(start, end))
            start = end
            at = chunk.find(b"\n", at + 1)
        self._start = start
        self._base += len(chunk)
        self._last = chunk[-1:] or self._last
        self.count += len(spans)
        return spans

    def _is_blank(self, chunk: bytes, start: int, end: int) -> bool:
        if end - start > 2:
            return False
        before = end - self._base - 2
        return end - start == 1 or (chunk[before : before + 1] if before >= 0 else self._last) == b"\r"

    def close(self) -> list[Span]:
        """The last line, where no newline ends it."""
        if self._start == self._base or (not self._blanks and self._base - self._start == 1 and self._last == b"\r"):
            return []
        span = Span(self._start, self._base)
        self._start = self._base
        self.count += 1
        return [span]


_Place = Literal["field", "plain", "quoted", "quote"]


class TableSplitter:
    """Rows of CSV or TSV. A quote opens a cell only at its start, two stand for one, and newlines inside are text.

    The first row tells the delimiter, and whether it is a header: names, all of them different, none a number.
    """

    key = None
    problem = ""

    def __init__(self, kind: RecordKind) -> None:
        self.kind: RecordKind = kind
        self.count = 0
        self.header: Span | None = None
        self.delimiter = ""
        self._first: bytes | None = b""
        self._base = self._start = 0
        self._place: _Place = "field"
        self._last = b""
        self._border = self._row = re.compile(b"(?!)")

    def feed(self, chunk: bytes) -> list[Span]:
        """The rows that end in this chunk."""
        if self._first is None:
            return self._rows(chunk)
        self._first += chunk
        if len(self._first) < _FIRST_ROW and not (b"\n" in chunk and self._complete(self._first)):
            return []
        return self._begin()

    @staticmethod
    def _complete(beginning: bytes) -> bool:
        """Whether a first row that has something in it has ended."""
        rows = _QUOTED.sub(b"", beginning.removeprefix(_MARK))
        return b'"' not in rows and b"\n" in rows.lstrip(b"\r\n")

    def _begin(self) -> list[Span]:
        """The delimiter and the header, and then what was kept back to know them."""
        beginning, self._first = self._first or b"", None
        if beginning.startswith(_MARK):
            self._base = self._start = len(_MARK)
            beginning = beginning[len(_MARK) :]
        row = _first_row(beginning)
        self.delimiter = "\t" if self.kind == "tsv" else _delimiter(row)
        mark = re.escape(self.delimiter.encode())
        self._border = re.compile(rb"\n|" + mark + rb'"')
        # A whole row at once, where the chunk has it all.
        cell = rb'(?:"(?:[^"]++|"")*"(?!")[^%b\n]*+|[^%b"\n][^%b\n]*+)?' % (mark, mark, mark)
        self._row = re.compile(cell + rb"(?:" + mark + cell + rb")*\n")
        spans = self._rows(beginning)
        if spans and _is_header(row, self.delimiter.encode()):
            self.header = spans.pop(0)
            self.count -= 1
        return spans

    def _rows(self, chunk: bytes) -> list[Span]:
        spans: list[Span] = []
        at, size = 0, len(chunk)
        while at < size:
            if self._place == "quoted":
                at = chunk.find(b'"', at) + 1
                if not at:
                    break
                self._place = "quote"
            elif self._place == "quote":
                again = chunk[at] == 0x22
                self._place = "quoted" if again else "plain"
                at += again
            elif self._start == self._base + at and (row := self._row.match(chunk, at)):
                at = row.end()
                self._end_row(chunk, at, spans)
            elif self._place == "field" and chunk[at] == 0x22:
                self._place, at = "quoted", at + 1
            else:
                at = self._plain(chunk, at, spans)
        self._base += size
        self._last = chunk[-1:] or self._last
        self.count += len(spans)
        return spans

    def _plain(self, chunk: bytes, at: int, spans: list[Span]) -> int:
        """Go on to the next cell that is quoted, or over the end of a row, or to the end of the chunk."""
        border = self._border.search(chunk, at)
        if border is None:
            self._place = "field" if chunk.endswith(self.delimiter.encode()) else "plain"
            return len(chunk)
        if border[0] != b"\n":
            self._place = "quoted"
            return border.end()
        self._end_row(chunk, border.end(), spans)
        return border.end()

    def _end_row(self, chunk: bytes, after: int, spans: list[Span]) -> None:
        start, end = self._start, self._base + after
        if end - start > 2 or (end - start == 2 and (chunk[after - 2 : after - 1] or self._last) != b"\r"):
            spans.append(Span(start, end))
        self._start, self._place = end, "field"

    def close(self) -> list[Span]:
        """The last row, where no newline ends it."""
        spans = self._begin() if self._first is not None else []
        if self._start < self._base and not (self._base - self._start == 1 and self._last == b"\r"):
            row = Span(self._start, self._base)
            self._start = self._base
            spans.append(row)
            self.count += 1
        return spans


def _first_row(beginning: bytes) -> bytes:
    """The first row of a table, as far as it can be told without its delimiter: quotes are taken as pairs."""
    beginning = beginning[:_FIRST_ROW].lstrip(b"\r\n")
    at = 0
    while (end := beginning.find(b"\n", at)) >= 0:
        if beginning.count(b'"', 0, end) % 2 == 0:
            return beginning[:end]
        at = end + 1
    return beginning


def _delimiter(row: bytes) -> str:
    plain = _QUOTED.sub(b"", row)
    return chr(max(_DELIMITERS, key=lambda mark: plain.count(bytes([mark]))))


def _is_header(row: bytes, delimiter: bytes) -> bool:
    cells = [cell.strip().strip(b'"') for cell in row.split(delimiter)]
    return len(set(cells)) == len(cells) and all(
        cell and len(cell) <= _LONGEST_NAME and not _NUMBER.fullmatch(cell) for cell in cells
    )
