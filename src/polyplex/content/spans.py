"""The place of a record in a content."""

from typing import NamedTuple


class Span(NamedTuple):
    """Bytes `start` to `end` (excluded) of the whole content."""

    start: int
    end: int
