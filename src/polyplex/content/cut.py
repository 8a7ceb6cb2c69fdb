"""Cutting a text to a number of tokens at a border that makes sense, so that a reader can go on exactly there."""

from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Raw, Struct

from polyplex.content import kinds, records
from polyplex.content.borders import Style, end_border, fence_closing, start_border
from polyplex.content.graphemes import safe_border
from polyplex.content.json_cut import json_border
from polyplex.content.tokens import estimate

CutKind = Literal["json", "jsonl", "csv", "tsv", "lines", "markdown", "text"]
_TRIES: Final = 8
_TAIL_PART: Final = 0.3
_MOST_COUNTED: Final = 2 * 1024 * 1024
_decode_list: Final = msgspec.json.Decoder(list[Raw]).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_LINED: Final = {kinds.LOG, kinds.CODE, kinds.XML, kinds.HTML, kinds.SVG}


class Cut(Struct, frozen=True, kw_only=True):
    """What is shown of a text: `kept`, which is `text[:end] + closing`, then a notice, then `tail`, if there is one.

    Offsets count characters, the `_bytes` ones their UTF-8. `resume` is where to read on: `end`, or the beginning of
    the next record. `tail` is `text[tail_start:]`. `records_shown` (headers not counted) is None where the text has no
    records, `records_total` also where it is too long to be counted; `key` holds the array of a JSON object. `closing`
    was added so that JSON is valid and a Markdown fence ends.
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


class _Border(NamedTuple):
    end: int
    resume: int
    kind: CutKind
    closing: str = ""
    shown: int | None = None
    key: str | None = None


def cut(text: str, max_tokens: int, *, media_type: str | None = None, tail: bool = False) -> Cut:
    """The beginning of a text in at most `max_tokens` (as estimated); the text itself where it fits.

    With `tail`, three tenths of the tokens go to the end of a text; records have no tail. The caller keeps tokens for
    its notice.
    """
    if estimate(text) <= max_tokens:
        return _whole(text, kinds.sniff(text, media_type))
    kind = kinds.sniff(text, media_type)
    tailed = tail and records.record_kind(kind) in (None, "lines") and max_tokens >= 40
    budget = max_tokens - int(max_tokens * _TAIL_PART) if tailed else max_tokens
    border, kept = _beginning(text, budget, kind)
    end_bytes = _bytes(text, 0, border.end)
    made = Cut(
        kept=kept,
        kind=border.kind,
        end=border.end,
        end_bytes=end_bytes,
        resume=border.resume,
        resume_bytes=end_bytes + _bytes(text, border.end, border.resume),
        total=len(text),
        total_bytes=end_bytes + _bytes(text, border.end, len(text)),
        closing=border.closing,
        records_shown=border.shown,
        records_total=None if border.shown is None else count_records(text, border.kind, border.key),
        key=border.key,
    )
    return _with_tail(made, text, max_tokens - budget) if tailed else made


def fitting(text: str, max_tokens: int) -> int:
    """How many characters from the beginning of a text are at most `max_tokens`, about and rather too few."""
    if max_tokens <= 0:
        return 0
    at = min(len(text), max_tokens * 4)
    for _ in range(_TRIES):
        cost = estimate(text[:at])
        if cost > max_tokens:
            at = min(at - 1, int(at * max_tokens / cost))
        elif at == len(text) or cost >= 0.93 * max_tokens:
            return at
        else:
            at = min(len(text), max(at + 1, int(at * 0.98 * max_tokens / max(cost, 1))))
    while at > 0 and estimate(text[:at]) > max_tokens:
        at = at * 9 // 10
    return at


def count_records(text: str, kind: CutKind, key: str | None = None) -> int | None:
    """How many records a text has (a JSON object under its `key`); None where it is too long to count, or has none."""
    if kind in ("markdown", "text") or len(text) > _MOST_COUNTED:
        return None
    if kind == "lines":
        return text.count("\n") + (not text.endswith("\n"))
    if kind == "json":
        return _count_elements(text, key)
    return len(records.split(_encoded(text), kind).spans)


def _count_elements(text: str, key: str | None) -> int | None:
    """The elements of an array that a reader of pages would find as well: the first one that is not empty."""
    try:
        if key is None:
            return len(_decode_list(text))
        for name, member in _decode_members(text).items():
            if bytes(memoryview(member)[:1]) == b"[" and (elements := _decode_list(member)):
                return len(elements) if name == key else None
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        pass  # it is no JSON further on
    return None


def _beginning(text: str, budget: int, kind: str) -> tuple[_Border, str]:
    """The best border within a budget, and the text up to it."""
    limit = fitting(text, budget)
    for _ in range(_TRIES):
        border = _border(text, limit, kind)
        kept = text[: border.end] + border.closing
        cost = estimate(kept)
        if cost <= budget or not border.end:
            return border, kept if cost <= budget else ""
        limit = min(border.end - 1, int(border.end * 0.97 * budget / cost))
    end = safe_border(text, fitting(text, budget // 2))
    return _Border(end, end, "text"), text[:end]


def _border(text: str, limit: int, kind: str) -> _Border:
    split = records.record_kind(kind)
    if split == "json":
        found = json_border(text, limit)
        if found is not None:
            return _Border(found.end, found.resume, "json", found.closing, found.records, found.key)
    elif split is not None and split != "lines":
        last = _last_record(text[:limit], split)
        if last is not None:
            return last
    style: Style = "markdown" if kind == kinds.MARKDOWN else "lines" if kind in _LINED else "text"
    end = end_border(text, limit, style)
    closing = fence_closing(text[:end]) if style == "markdown" else ""
    shown = text.count("\n", 0, end) if style == "lines" and text[:end].endswith("\n") else None
    return _Border(end, end, style, closing, shown)


def _last_record(beginning: str, kind: records.RecordKind) -> _Border | None:
    """Where the last whole record of a beginning ends; None where it has none."""
    parts = records.splitter(kind)
    data = _encoded(beginning)
    # What may be the half of a record is not fed: a row of a table is one only with its newline.
    spans = parts.feed(data) + (parts.close() if kind in ("csv", "tsv") and parts.count == 0 else [])
    spans = [span for span in spans if data[span.end - 1 : span.end] == b"\n"]
    if not spans:
        return None
    end = len(data[: spans[-1].end].decode("utf-8", "surrogatepass"))
    return _Border(end, end, kind, shown=len(spans))  # type: ignore[arg-type]


def _with_tail(made: Cut, text: str, budget: int) -> Cut:
    """With as much of the end as fits, where there is a middle to leave out."""
    size = fitting(text[max(made.resume, len(text) - budget * 8) :][::-1], budget)
    start = start_border(text, max(made.resume, len(text) - size))
    while start < len(text) and estimate(text[start:]) > budget:
        start = start_border(text, start + max(1, (len(text) - start) // 10))
    if start >= len(text):
        return made
    return msgspec.structs.replace(made, tail=text[start:], tail_start=start)


def _whole(text: str, kind: str) -> Cut:
    size = len(text) if text.isascii() else _bytes(text, 0, len(text))
    return Cut(
        kept=text,
        kind=_named(kind),
        end=len(text),
        end_bytes=size,
        resume=len(text),
        resume_bytes=size,
        total=len(text),
        total_bytes=size,
    )


def _named(kind: str) -> CutKind:
    split = records.record_kind(kind)
    if split is not None and split != "lines":
        return split
    return "markdown" if kind == kinds.MARKDOWN else "lines" if kind in _LINED else "text"


def _bytes(text: str, start: int, end: int) -> int:
    piece = text[start:end]
    return len(piece) if piece.isascii() else len(_encoded(piece))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
