"""Records by their number: items of JSON arrays, rows, JSON lines and lines, a page at a time.

Where records begin is remembered once for each block that somebody has read through; a page is then read from the mark
before it on.
"""

import threading
from array import array
from bisect import bisect_right
from typing import Final

from polyplex.content.records import RecordKind, Splitter, splitter
from polyplex.content.spans import Span
from polyplex.errors import PayloadQueryError
from polyplex.store.reading.parts import PagePart
from polyplex.store.reading.window import Window, last_whole, whole_text

COUNT_ALL_BYTES: Final = 16 << 20
BLOCK_BYTES: Final = 32 * 1024  # small, as a page splits one or two of them again


class RecordIndex:
    """What is known of the records of one payload; 16 bytes for each block of it."""

    def __init__(self, kind: RecordKind) -> None:
        self.kind: RecordKind = kind
        self.splitter: Splitter = splitter(kind)
        self.whole = False  # all has been split
        self.first: Span | None = None
        self._numbers = array("Q")  # of the first record that ended in a block
        self._starts = array("Q")  # where that one begins
        self._fed = 0
        self._lock = threading.Lock()

    def split_to(self, window: Window, record: int | None) -> None:
        """Split until this record (0 is the first) is known; None splits all. Raises `PayloadQueryError`."""
        with self._lock:
            while not self.whole and (record is None or self.splitter.count <= record):
                block = window.load(self._fed)
                self._fed += len(block)
                known = self.splitter.count
                self._note(known, self.splitter.feed(block) if block else [])
                if self._fed >= window.size or not block:
                    known = self.splitter.count
                    self._note(known, self.splitter.close())
                    self.whole = True
                if self.splitter.problem and not self.splitter.count:
                    raise PayloadQueryError(
                        f"the payload has no records: {self.splitter.problem}. Read it by offset, by lines, with grep "
                        "or with a JSON path"
                    )

    def _note(self, known: int, spans: list[Span]) -> None:
        if not spans:
            return
        if self.first is None:
            self.first = spans[0]
        self._numbers.append(known)
        self._starts.append(spans[0].start)

    def mark(self, record: int) -> tuple[int, int]:
        """A record at or before this one, and where it begins."""
        with self._lock:
            at = bisect_right(self._numbers, record) - 1
            return self._numbers[at], self._starts[at]


def read_page(window: Window, index: RecordIndex, *, first: int, page_size: int, max_bytes: int) -> PagePart:
    """`page_size` records from record `first` on, as far as they fit.

    Raises `PayloadQueryError` for a record that is not there, and for a payload that has none.
    """
    index.split_to(window, None if window.size <= COUNT_ALL_BYTES else first + page_size)
    count = index.splitter.count
    total = count if index.whole else None
    if first >= count and (first or count):
        raise PayloadQueryError(f"record {first} is behind the end: there are {count} records, the first is 0")
    header = index.splitter.header
    head = window.read(header.start, header.end) if header is not None else b""
    spans = _spans(window, index, first, min(page_size, count - first)) if count else []
    fitting = _fitting(spans, max_bytes - len(head))
    start, end = (fitting[0].start, fitting[-1].end) if fitting else (0, 0)
    cut, onward = len(fitting) < len(spans), None
    if end - start > max_bytes:  # a single record that does not fit: as much of it as does
        beginning = _beginning(window.read(start, start + max_bytes))
        text, end, cut = whole_text(head + beginning), start + len(beginning), True
        onward = end
    else:
        text = _text(window, index.kind, fitting, head)
    following = first + len(fitting)
    return PagePart(
        text=text,
        kind=index.kind,
        page=first // page_size + 1,
        page_size=page_size,
        first=first,
        count=len(fitting),
        total=total,
        pages=None if total is None else -(-total // page_size),
        next_record=following if following < count else None,
        offset=start,
        end=end,
        size=window.size,
        cut=cut,
        next_offset=onward,
        key=index.splitter.key,
    )


def _spans(window: Window, index: RecordIndex, first: int, count: int) -> list[Span]:
    """The places of some records that are known to be there."""
    number, start = index.mark(first)
    again = splitter(index.kind)
    prefix, extra = _prefix(window, index)
    found = again.feed(prefix)
    shift = start - len(prefix)
    offset, skip = start, first - number + extra
    while len(found) < skip + count:
        block = window.load(offset)
        offset += len(block)
        found += again.feed(block) if block else again.close()
        if not block:
            break
        if offset >= window.size:
            found += again.close()
            break
    return [Span(span.start + shift, span.end + shift) for span in found[skip : skip + count]]


def _prefix(window: Window, index: RecordIndex) -> tuple[bytes, int]:
    """What a splitter must see before a record in the middle, and how many records that gives."""
    if index.kind == "json":
        return b"[", 0
    if index.kind in ("csv", "tsv"):
        header, first = index.splitter.header, index.first
        top = header or first
        return (window.read(top.start, top.end), 0 if header else 1) if top else (b"", 0)
    return b"", 0


def _fitting(spans: list[Span], room: int) -> list[Span]:
    """As many as fit, at least one."""
    for number, span in enumerate(spans):
        room -= span.end - span.start + 1
        if room < 0 and number:
            return spans[:number]
    return spans


def _text(window: Window, kind: RecordKind, spans: list[Span], head: bytes) -> str:
    if kind != "json":
        body = window.read(spans[0].start, spans[-1].end) if spans else b""
        return whole_text(head + body)
    return "[" + ",".join(whole_text(window.read(span.start, span.end)) for span in spans) + "]"


def _beginning(data: bytes) -> bytes:
    return data[: last_whole(data)]
