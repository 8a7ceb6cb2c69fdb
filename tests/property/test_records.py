"""Records are the same however a content is cut into chunks, and nothing of the content is lost between them."""

import csv
import io
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.content import records
from polyplex.content.records import KINDS, RecordKind
from polyplex.content.spans import Span
from tests.property.test_messages import VALUES, spellings

NOISE = st.text(st.sampled_from('ab,;\t"\\[]{}: \r\n0é|')).map(str.encode) | st.binary(max_size=40)
CELLS = st.text(st.sampled_from('ab1," \n;é'), max_size=6)
TABLES = st.integers(2, 4).flatmap(lambda width: st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=6))


def chunked(data: bytes, cuts: list[int], kind: RecordKind) -> tuple[list[Span], Any]:
    """The records of a content that comes in chunks."""
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    parts = records.splitter(kind)
    spans = [span for start, end in zip(places, places[1:], strict=False) for span in parts.feed(data[start:end])]
    return spans + parts.close(), parts


@given(NOISE, st.lists(st.integers(0, 200)), st.sampled_from(KINDS))
def test_chunks_make_no_difference_to_any_content(data: bytes, cuts: list[int], kind: RecordKind) -> None:
    whole = records.split(data, kind)
    spans, parts = chunked(data, cuts, kind)
    assert (spans, parts.header, parts.key, parts.problem) == (whole.spans, whole.header, whole.key, whole.problem)
    assert parts.count == len(spans)


@given(NOISE, st.sampled_from(KINDS[1:]))
def test_lines_and_rows_leave_out_nothing_but_blank_lines(data: bytes, kind: RecordKind) -> None:
    found = records.split(data, kind)
    spans = [*([found.header] if found.header else []), *found.spans, Span(len(data), len(data))]
    at = 0
    for start, end in spans:
        assert start >= at
        assert data[at:start].removeprefix(b"\xef\xbb\xbf").strip(b"\r\n") == b""
        at = end
    if kind == "lines":
        assert b"".join(data[start:end] for start, end in found.spans) == data


@given(st.lists(VALUES, max_size=5).flatmap(lambda items: st.tuples(st.just(items), spellings(items))))
def test_elements_of_an_array_are_those_that_a_parser_finds(drawn: tuple[list[Any], str]) -> None:
    items, text = drawn
    data = text.encode()
    found = records.split(data, "json")
    assert [json.loads(data[start:end]) for start, end in found.spans] == items
    assert not found.problem


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.lists(VALUES, min_size=1, max_size=3), st.data())
def test_an_array_under_a_key_is_found(others: dict[str, Any], items: list[Any], data: st.DataObject) -> None:
    whole = {key: value for key, value in others.items() if not (isinstance(value, list) and value)} | {
        'the "key': items
    }
    raw = data.draw(spellings(whole)).encode()
    found = records.split(raw, "json")
    assert found.key == 'the "key'
    assert [json.loads(raw[start:end]) for start, end in found.spans] == items


@given(TABLES, st.sampled_from([",", ";"]))
def test_rows_are_those_that_the_standard_reader_finds(table: list[list[str]], delimiter: str) -> None:
    written = io.StringIO()
    names = [f"name{number}" for number in range(len(table[0]) if table else 2)]
    csv.writer(written, delimiter=delimiter, lineterminator="\n").writerows([names, *table])
    data = written.getvalue().encode()
    found = records.split(data, "csv")
    assert found.header is not None
    rows = [
        next(csv.reader(io.StringIO(data[start:end].decode(), newline=""), delimiter=found.delimiter))
        for start, end in found.spans
    ]
    assert rows == table


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("csv", b'a,b\n"' + b"x" * 300_000),
        ("csv", b"a,b\n" + b'"",' * 100_000),
        ("csv", b'"' * 300_001),
        ("json", b"[" * 300_000),
        ("json", b'["' + b"\\" * 300_001),
        ("json", b'{"' + b"k" * 300_000),
        ("json", b"[" + b'"\\u0000",' * 40_000),
        ("json", b'"' * 300_000),
    ],
)
def test_hostile_contents_are_read_in_small_chunks_without_growing(kind: RecordKind, data: bytes) -> None:
    parts = records.splitter(kind)
    for start in range(0, len(data), 1000):
        parts.feed(data[start : start + 1000])
    parts.close()
    held = [value for value in vars(parts).values() if isinstance(value, bytes | str | list)]
    assert all(len(value) < 20_000 for value in held)
    assert not re.search("error", parts.problem)
