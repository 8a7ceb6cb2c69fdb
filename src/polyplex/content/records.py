"""Splitting a content into records as it comes in: JSON arrays, JSON lines, CSV, TSV and lines."""

from typing import Literal, NamedTuple, Protocol

RecordKind = Literal["json", "jsonl", "csv", "tsv", "lines"]


class Span(NamedTuple):
    """Bytes `start` to `end` (excluded) of the whole content."""

    start: int
    end: int


class Splitter(Protocol):
    """Takes a content in chunks of any size and gives the spans of its records; keeps no record itself.

    `header` is the span of a CSV header (which is no record), `key` the member of a JSON object that holds the array,
    `problem` says why the rest has no records.
    """

    kind: RecordKind
    count: int
    header: Span | None
    key: str | None
    problem: str

    def feed(self, chunk: bytes) -> list[Span]:
        """The records that end in this chunk."""
        ...

    def close(self) -> list[Span]:
        """The records that end with the content."""
        ...


def splitter(kind: RecordKind) -> Splitter:
    """A new splitter."""
    raise NotImplementedError


def record_kind(media_type: str) -> RecordKind | None:
    """How a media type is split into records; None where it has none (an `application/json` may still turn out to)."""
    raise NotImplementedError
