"""What readers answer: a part of a payload, which part it is, and where to read on. Wording is left to others.

Offsets and sizes are bytes of the payload; an `end` is excluded; `next_...` is None where nothing follows.
"""

from typing import Literal

from msgspec import Struct


class BytesPart(Struct, frozen=True, kw_only=True):
    """A range of bytes."""

    data: bytes
    offset: int
    end: int
    size: int
    next_offset: int | None


class TextPart(Struct, frozen=True, kw_only=True):
    """A range of text. It begins and ends between characters, so `offset` may be a little after the one asked for."""

    text: str
    offset: int
    end: int
    size: int
    next_offset: int | None


class LinesPart(Struct, frozen=True, kw_only=True):
    """Lines `first` (1 is the first) and the following ones, with their newlines.

    `total` is None where the lines behind were not counted. Where `cut`, the last line goes on at `next_offset`.
    """

    text: str
    first: int
    count: int
    total: int | None
    next_line: int | None
    offset: int
    end: int
    size: int
    cut: bool = False
    next_offset: int | None = None


class Match(Struct, frozen=True, kw_only=True):
    """A line that matches; of a very long one the surroundings of the match (`cut`), which begin at `offset`."""

    line: int
    text: str
    offset: int
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    cut: bool = False


class GrepPart(Struct, frozen=True, kw_only=True):
    """Lines that match. `scanned` is how far was searched; `next_cursor` goes on from there."""

    matches: list[Match]
    scanned: int
    size: int
    next_cursor: str | None


class Node(Struct, frozen=True, kw_only=True):
    """A value in a JSON payload: its normalized path, and its JSON as it stands; only the beginning where `cut`."""

    path: str
    raw: bytes
    offset: int
    end: int
    cut: bool = False


class JsonPart(Struct, frozen=True, kw_only=True):
    """Values that a path selects, from the `skip`-th on. `next_skip` is where to read on."""

    nodes: list[Node]
    skip: int
    next_skip: int | None
    size: int


class PagePart(Struct, frozen=True, kw_only=True):
    """Records `first` (0 is the first) and following ones.

    `text` is complete in itself: a JSON array, or rows below their header, or lines. `total` and `pages` are None where
    the records behind were not counted. Where `cut`, fewer fit than were asked for; where there is a `next_offset`,
    only the beginning of the one record is there, and it goes on at that offset.
    """

    text: str
    kind: Literal["json", "jsonl", "csv", "tsv", "lines"]
    page: int
    page_size: int
    first: int
    count: int
    total: int | None
    pages: int | None
    next_record: int | None
    offset: int
    end: int
    size: int
    cut: bool = False
    next_offset: int | None = None
    key: str | None = None
