"""Cutting a text to a number of tokens at a border that makes sense, so that a reader can go on exactly there."""

from typing import Literal

from msgspec import Struct

CutKind = Literal["records", "json", "markdown", "code", "lines", "text"]


class Cut(Struct, frozen=True, kw_only=True):
    """`kept` is what is shown: `text[:end] + closing`, then, after the notice, `tail` (`text[tail_start:]`).

    Offsets count characters of the text, the `_bytes` ones of its UTF-8. `resume` is where reading on starts: `end`, or the start
    of the next record. `records_shown` and `records_total` are None where the text has no records, the total also where
    it was not counted. `closing` is what was added so that JSON and Markdown fences end.
    """

    kept: str
    kind: CutKind
    end: int
    end_bytes: int
    resume: int
    resume_bytes: int
    total: int
    total_bytes: int
    closing: str = ""
    tail: str = ""
    tail_start: int | None = None
    records_shown: int | None = None
    records_total: int | None = None
    key: str | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing was cut."""
        return self.end == self.total


def cut(text: str, max_tokens: int, *, media_type: str | None = None, tail: bool = False) -> Cut:
    """The beginning of a text in at most `max_tokens` (with `tail`, a part of it is the end of the text)."""
    raise NotImplementedError
