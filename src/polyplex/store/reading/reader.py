"""Reading parts of stored results for their callers, each part bounded, in threads of the store.

Raises `PayloadMissing`, `PayloadQueryError` for what cannot be answered, and `PayloadStoreFailed`.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from polyplex.content.kinds import SAMPLE, sniff
from polyplex.content.records import KINDS, RecordKind, record_kind
from polyplex.errors import PayloadQueryError
from polyplex.store.payload_store import OpenPayload, PayloadStore
from polyplex.store.reading import grep, json_path, json_walk, lines, pages
from polyplex.store.reading.parts import BytesPart, GrepPart, JsonPart, LinesPart, PagePart, TextPart
from polyplex.store.reading.window import BLOCK_BYTES, UTF8_SEQUENCE, Watch, Window, first_whole, last_whole, whole_text

MAX_PART_BYTES: Final = 64 << 20
DEFAULT_PART_BYTES: Final = 64 * 1024
MAX_COUNT: Final = 100_000
MAX_OFFSET: Final = 1 << 53
SECONDS: Final = 30.0
KEPT_INDEXES: Final = 128
PARTS_AT_ONCE: Final = 2  # of one caller; the threads are there for others, too
T = TypeVar("T")


class PayloadReader:
    """The readers over a store. `seconds` is how long one part may take; indexes are kept for later parts."""

    def __init__(self, store: PayloadStore, seconds: float = SECONDS) -> None:
        self._store, self._seconds = store, seconds
        self._lines: OrderedDict[str, lines.LineIndex] = OrderedDict()
        self._records: OrderedDict[str, pages.RecordIndex] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def bytes(self, owner: str, reference: str, *, offset: int = 0, limit: int = DEFAULT_PART_BYTES) -> BytesPart:
        """`limit` bytes from `offset` on; a negative offset counts from the end."""
        _check("offset", offset, -MAX_OFFSET, MAX_OFFSET)
        _check("limit", limit, 1, MAX_PART_BYTES)

        def work(opened: OpenPayload, watch: Watch) -> BytesPart:
            size = opened.payload.size
            start = _start(offset, size)
            data = opened.source.read_at(start, limit)
            end = start + len(data)
            return BytesPart(data=data, offset=start, end=end, size=size, next_offset=end if end < size else None)

        return await self._read(owner, reference, work)

    async def text(self, owner: str, reference: str, *, offset: int = 0, limit: int = DEFAULT_PART_BYTES) -> TextPart:
        """As `bytes`, as text that begins and ends between characters; at least one character."""
        _check("offset", offset, -MAX_OFFSET, MAX_OFFSET)
        _check("limit", limit, 1, MAX_PART_BYTES)

        def work(opened: OpenPayload, watch: Watch) -> TextPart:
            size = opened.payload.size
            start = _start(offset, size)
            data = opened.source.read_at(start, max(limit, UTF8_SEQUENCE) + UTF8_SEQUENCE)
            if start:
                left_out = first_whole(data)
                start, data = start + left_out, data[left_out:]
            kept = data[:limit][: last_whole(data[:limit])] if len(data) > limit else data
            if not kept:
                kept = data[: _first_character(data)]
            end = start + len(kept)
            return TextPart(
                text=whole_text(kept), offset=start, end=end, size=size, next_offset=end if end < size else None
            )

        return await self._read(owner, reference, work)

    async def lines(
        self, owner: str, reference: str, *, first: int = 1, count: int = 1000, max_bytes: int = DEFAULT_PART_BYTES
    ) -> LinesPart:
        """`count` lines from line `first` on: 1 is the first line, -1 the last."""
        _check("first", first, -MAX_OFFSET, MAX_OFFSET)
        _check("count", count, 1, MAX_COUNT)
        _check("max_bytes", max_bytes, UTF8_SEQUENCE, MAX_PART_BYTES)
        if not first:
            raise PayloadQueryError("lines are counted from 1, or from the end with -1")

        def work(opened: OpenPayload, watch: Watch) -> LinesPart:
            index = _kept(self._lines, opened.payload.id, lines.LineIndex)
            return lines.read_lines(_window(opened, watch), index, first, count, max_bytes)

        return await self._read(owner, reference, work)

    async def grep(
        self,
        owner: str,
        reference: str,
        pattern: str,
        *,
        regex: bool = False,
        ignore_case: bool = False,
        context: int = 0,
        max_matches: int = 50,
        max_bytes: int = DEFAULT_PART_BYTES,
        cursor: str | None = None,
    ) -> GrepPart:
        """Lines that have the pattern in them, with `context` lines around each. `cursor` goes on after a part.

        Where the time is up, what was found so far is the part.
        """
        _check("context", context, 0, grep.MAX_CONTEXT)
        _check("max_matches", max_matches, 1, MAX_COUNT)
        _check("max_bytes", max_bytes, 1, MAX_PART_BYTES)
        find = grep.finder(pattern, regex=regex, ignore_case=ignore_case)

        def work(opened: OpenPayload, watch: Watch) -> GrepPart:
            window = _window(opened, watch)
            return grep.grep(window, find, context=context, max_matches=max_matches, max_bytes=max_bytes, cursor=cursor)

        return await self._read(owner, reference, work)

    async def json_path(
        self,
        owner: str,
        reference: str,
        path: str,
        *,
        skip: int = 0,
        limit: int = 1000,
        max_bytes: int = DEFAULT_PART_BYTES,
    ) -> JsonPart:
        """Values that a JSONPath selects, in the order of the document; JSON lines count as an array."""
        _check("skip", skip, 0, MAX_OFFSET)
        _check("limit", limit, 1, MAX_COUNT)
        _check("max_bytes", max_bytes, UTF8_SEQUENCE, MAX_PART_BYTES)
        segments = json_path.parse_path(path)

        def work(opened: OpenPayload, watch: Watch) -> JsonPart:
            window = _window(opened, watch)
            kind = _kind(opened, None)
            part = json_walk.read_json_path(
                window, segments, skip=skip, limit=limit, max_bytes=max_bytes, lines=kind == "jsonl"
            )
            if not part.nodes and kind not in ("json", "jsonl"):
                raise PayloadQueryError(f"it is {opened.payload.media_type}, no JSON; read it by page, lines or grep")
            return part

        return await self._read(owner, reference, work)

    async def page(
        self,
        owner: str,
        reference: str,
        page: int = 1,
        *,
        page_size: int = 50,
        record: int | None = None,
        kind: RecordKind | None = None,
        max_bytes: int = DEFAULT_PART_BYTES,
    ) -> PagePart:
        """A page of records; `record` (0 is the first) instead of `page` begins anywhere.

        `kind` says how to split where the media type does not tell.
        """
        _check("page", page, 1, MAX_OFFSET)
        _check("page_size", page_size, 1, MAX_COUNT)
        _check("max_bytes", max_bytes, UTF8_SEQUENCE, MAX_PART_BYTES)
        _check("record", record or 0, 0, MAX_OFFSET)
        if kind is not None and kind not in KINDS:
            raise PayloadQueryError(f"kind must be one of {', '.join(KINDS)}")
        first = (page - 1) * page_size if record is None else record

        def work(opened: OpenPayload, watch: Watch) -> PagePart:
            split_as = _kind(opened, kind)
            if split_as is None:
                raise PayloadQueryError(
                    f"a payload of type {opened.payload.media_type} has no records; read it by offset and limit"
                )
            key = f"{opened.payload.id} {split_as}"
            index = _kept(self._records, key, lambda: pages.RecordIndex(split_as))
            window = _window(opened, watch, pages.BLOCK_BYTES)
            return pages.read_page(window, index, first=first, page_size=page_size, max_bytes=max_bytes)

        return await self._read(owner, reference, work)

    async def _read(self, owner: str, reference: str, work: Callable[[OpenPayload, Watch], T]) -> T:
        """Do all of it in one thread, so that the payload is closed when nothing reads it any more."""
        turns = self._turns.get(owner)
        if turns is None:
            turns = self._turns[owner] = asyncio.Semaphore(PARTS_AT_ONCE)
        async with turns:
            watch = Watch(self._seconds)
            try:
                return await self._store.read(owner, reference, lambda opened: work(opened, watch))
            except asyncio.CancelledError:
                watch.stop()
                raise


def _window(opened: OpenPayload, watch: Watch, block_bytes: int = BLOCK_BYTES) -> Window:
    return Window(opened.source, opened.payload.size, watch, block_bytes)


def _kind(opened: OpenPayload, asked: RecordKind | None) -> RecordKind | None:
    """How the payload is split: as asked for, as its type says, or as its beginning looks."""
    if asked is not None:
        return asked
    media_type = sniff(opened.source.read_at(0, SAMPLE), opened.payload.media_type)
    return record_kind(media_type)


def _kept(indexes: OrderedDict[str, T], key: str, make: Callable[[], T]) -> T:
    """The index of a payload. Threads may race for it: then one of two is made in vain."""
    index = indexes.pop(key, None)
    if index is None:
        index = make()
    indexes[key] = index
    while len(indexes) > KEPT_INDEXES:
        try:
            indexes.popitem(last=False)
        except KeyError:  # another thread took it
            break
    return index


def _start(offset: int, size: int) -> int:
    start = max(0, size + offset) if offset < 0 else offset
    if start > size:
        raise PayloadQueryError(f"offset {offset} is behind the end: the payload has {size} bytes")
    return start


def _first_character(data: bytes) -> int:
    """The length of the first character."""
    for length in range(1, UTF8_SEQUENCE + 1):
        if last_whole(data[:length]) == length:
            return length
    return UTF8_SEQUENCE


def _check(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise PayloadQueryError(f"{name} must be from {low:,} to {high:,}, not {value:,}")
