"""The shape of a payload in a few tokens: enough to know whether to read on, and what to ask for.

It is made from the first bytes, and the last ones where they are there: the whole may be far larger than memory. What
is counted in a part only is said to be so.
"""

from typing import Any, Final

import msgspec

from polyplex.content import binaries, kinds, records
from polyplex.content.borders import end_border, start_border
from polyplex.content.columns import Column, object_columns, read_rows, table_columns
from polyplex.content.cut import fitting
from polyplex.content.graphemes import safe_border
from polyplex.content.json_cut import json_border
from polyplex.content.outline import outline
from polyplex.content.records import RecordKind
from polyplex.content.tokens import estimate
from polyplex.content.values import is_array, is_object

HEAD_BYTES: Final = 65_536
TAIL_BYTES: Final = 4_096
_MOST_ROWS: Final = 100
_MOST_COLUMNS: Final = 24
_SHAPE_PART: Final = 0.7
_RECORDS_SHOWN: Final = 100
_RECORD_BYTES: Final = 24_576


def preview(
    data: bytes,
    media_type: str,
    total_bytes: int,
    *,
    tail: bytes = b"",
    max_tokens: int = 300,
    records_total: int | None = None,
    sniffed: bool = False,
) -> str:
    """What is in a payload, from its first bytes (`data`) and last ones (`tail`), in at most `max_tokens`.

    `records_total`: the number of its records (or lines) where it was counted as it came in. `sniffed`: the media type
    is what `kinds.sniff` made of it already. Never fails.
    """
    head = data[:HEAD_BYTES]
    if not head:
        return "Empty"
    kind = media_type if sniffed else kinds.sniff(head, media_type)
    whole = len(head) >= total_bytes
    split = records.record_kind(kind)
    if not kinds.is_text(kind) or kind == kinds.SVG:
        return fit(binaries.describe(head, kind, total_bytes, tail), max_tokens)
    shape = None
    # More of what goes on like this tells nothing new.
    part = head if whole else head[:_RECORD_BYTES]
    if split == "json":
        shape = _json(part, whole, total_bytes, records_total)
    elif split is not None and split != "lines":
        shape = _rows(part, split, whole, total_bytes, records_total)
    if shape is None:
        shape = _lines(head, kind, whole, total_bytes, records_total)
    return _with_excerpts(shape, head, tail if not whole else b"", max_tokens, split)


def fit(text: str, max_tokens: int) -> str:
    """A text in at most `max_tokens`; where it is longer, an ellipsis ends it."""
    if estimate(text) <= max_tokens:
        return text
    kept = text[: safe_border(text, fitting(text, max_tokens - 2))]
    return kept + "…" if kept else ""


def text_of(data: bytes) -> str:
    """The text of a part of a payload, without the characters that its borders cut."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    end = len(data)
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:
            length = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            end -= back if length > back else 0
            break
    return data[start:end].decode("utf-8", "replace").removeprefix("\ufeff")


def column_lines(columns: list[Column]) -> str:
    """One line for each column."""
    said = [f"- {column.describe()}" for column in columns[:_MOST_COLUMNS]]
    if len(columns) > _MOST_COLUMNS:
        said.append(f"- … {len(columns) - _MOST_COLUMNS:,} more columns")
    return "\n".join(said)


def parsed(data: bytes, whole: bool) -> Any:
    """The JSON value of a beginning, with what is whole in it; None where it is not JSON (or null)."""
    text = text_of(data)
    try:
        if whole:
            return msgspec.json.decode(text)
        border = json_border(text, len(text))
        return None if border is None else msgspec.json.decode(text[: border.end] + border.closing)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


def _json(head: bytes, whole: bool, total_bytes: int, total: int | None) -> str | None:
    value, seen, seen_bytes = _json_value(head, whole)
    if value is None:
        return None
    key, rows = main_array(value)
    if rows:
        if whole or seen or total is not None:
            count = _counted(seen or len(rows), seen_bytes or len(head), whole, total_bytes, total)
        else:  # not even the first one is here whole, which says nothing of how many there are
            count = f"{len(rows)} or more"
        where = "JSON array of" if key is None else f"JSON object, {outline_others(value, key)}{key}: array of"
        sampled = rows[:_MOST_ROWS]
        if not all(is_object(row) for row in sampled):
            return f"{where} {count} elements: {outline(sampled)}"
        of = "" if len(sampled) == len(rows) and whole else f" (in the first {len(sampled):,})"
        return f"{where} {count} objects, keys{of}:\n{column_lines(object_columns(sampled))}"
    return f"JSON {outline(value)}" + ("" if whole else f" (of the first {len(head):,} bytes)")


def _json_value(head: bytes, whole: bool) -> tuple[Any, int, int]:
    """The value of a beginning (of an array its first elements), how many elements are in it, and to which byte."""
    if whole:
        value = parsed(head, whole)
        return value, 0, 0
    found = records.split(head, "json")
    spans = found.spans
    if not spans:
        return parsed(head, whole), 0, 0
    last = spans[min(len(spans), _MOST_ROWS + 1) - 1].end
    try:
        value = msgspec.json.decode(head[:last].removeprefix(b"\xef\xbb\xbf") + (b"]" if found.key is None else b"]}"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return parsed(head, whole), 0, 0
    return value, len(spans), spans[-1].end


def outline_others(value: dict[str, Any], key: str) -> str:
    """The other keys of an object, before the one that holds its records."""
    others = {name: member for name, member in value.items() if name != key}
    return f"{outline(others, 2, 8)} and " if others else ""


def main_array(value: Any) -> tuple[str | None, list[Any]]:
    """The array that holds the records: the value itself, or the first member that has any."""
    if is_array(value):
        return None, value
    if is_object(value):
        for key, member in value.items():
            if is_array(member) and member:
                return key, member
    return None, []


def _rows(head: bytes, kind: RecordKind, whole: bool, total_bytes: int, total: int | None) -> str | None:
    if kind == "jsonl":
        return _json_lines(head, whole, total_bytes, total)
    header, rows, found = read_rows(head, kind, _MOST_ROWS)
    if not whole and len(found.spans) > 1 and len(rows) == len(found.spans):
        rows.pop()  # it may be cut
    if not rows:
        return None
    count = _counted(len(found.spans), found.spans[-1].end, whole, total_bytes, total)
    columns = table_columns(rows, header)
    of = "" if whole and len(rows) == len(found.spans) else f" (in the first {len(rows):,} rows)"
    named = "with a header" if header else "without a header"
    mark = {"\t": "tab", ",": "comma"}.get(found.delimiter, repr(found.delimiter))
    name = "TSV" if kind == "tsv" else f"CSV ({mark})"
    return f"{name} {named}, {count} rows, {len(columns)} columns{of}:\n{column_lines(columns)}"


def _json_lines(head: bytes, whole: bool, total_bytes: int, total: int | None) -> str | None:
    found = records.split(head, "jsonl")
    spans = found.spans if whole else found.spans[:-1]
    rows: list[Any] = []
    for start, end in spans[:_MOST_ROWS]:
        try:
            rows.append(msgspec.json.decode(head[start:end]))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
    if not rows:
        return None
    count = _counted(len(spans), spans[-1].end, whole, total_bytes, total)
    if all(is_object(row) for row in rows):
        return f"JSON lines, {count} objects, keys (in the first {len(rows):,}):\n{column_lines(object_columns(rows))}"
    return f"JSON lines, {count} values: {outline(rows)}"


def _counted(seen: int, seen_bytes: int, whole: bool, total_bytes: int, total: int | None) -> str:
    if total is not None or whole:
        return f"{seen if total is None else total:,}"
    guess = seen * total_bytes / max(seen_bytes, 1)
    step = 10 ** max(0, len(str(int(guess))) - 2)
    return f"about {round(guess / step) * step:,}"


def _lines(head: bytes, kind: str, whole: bool, total_bytes: int, total: int | None) -> str:
    lines = head.count(b"\n") + (whole and not head.endswith(b"\n"))
    name = {kinds.LOG: "Log", kinds.MARKDOWN: "Markdown", kinds.HTML: "HTML", kinds.XML: "XML", kinds.CODE: "Code"}.get(
        kind, "JSON that does not parse" if kind == kinds.JSON else "Text"
    )
    count = _counted(lines, len(head), whole, total_bytes, total)
    return f"{name}, {count} line{'s' * (count != '1')}, {total_bytes:,} bytes"


def _with_excerpts(shape: str, head: bytes, tail: bytes, max_tokens: int, split: RecordKind | None) -> str:
    """The shape, and with the tokens that are left the beginning and the end."""
    shape = fit(shape, int(max_tokens * _SHAPE_PART) if estimate(shape) > max_tokens else max_tokens)
    left = max_tokens - estimate(shape) - 16
    if split not in (None, "lines"):
        left = min(left, _RECORDS_SHOWN)
    if left < 24:
        return shape
    ending = left // 3 if tail and split in (None, "lines") else 0
    text = text_of(head[: left * 16])
    begin = text[: end_border(text, fitting(text, left - ending), "text")].strip("\n")
    said = f"{shape}\nbegins:\n{begin}" if begin.strip() else shape
    if ending:
        last = text_of(tail[-ending * 16 :])
        size = fitting(last[::-1], ending)
        last = last[start_border(last, len(last) - size) :].strip("\n")
        said += f"\n…\nends:\n{last}" if last.strip() else ""
    return fit(said, max_tokens)
