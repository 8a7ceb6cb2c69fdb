import pytest

from polyplex.content import kinds, records
from polyplex.content.records import RecordKind, record_kind, split

NDJSON = b'{"a":1}\r\n\r\n{"a":2}\n\n{"a":3}'


def parts(data: bytes, kind: RecordKind) -> list[bytes]:
    return [data[start:end] for start, end in split(data, kind).spans]


def test_lines_are_all_there_blank_ones_too() -> None:
    assert parts(b"a\n\nb\r\nc", "lines") == [b"a\n", b"\n", b"b\r\n", b"c"]
    assert parts(b"", "lines") == []


def test_json_lines_leave_out_blank_lines() -> None:
    assert parts(NDJSON, "jsonl") == [b'{"a":1}\r\n', b'{"a":2}\n', b'{"a":3}']
    assert parts(b"1\n\r", "jsonl") == [b"1\n"]


def test_rows_keep_what_is_quoted_together() -> None:
    data = b'id,note\r\n1,"two\r\nlines, and ""quotes"""\r\n\r\n2,5" pipe\r\n'
    found = split(data, "csv")
    assert [data[start:end] for start, end in found.spans] == [
        b'1,"two\r\nlines, and ""quotes"""\r\n',
        b'2,5" pipe\r\n',
    ]
    assert found.header is not None
    assert data[slice(*found.header)] == b"id,note\r\n"
    assert found.delimiter == ","


@pytest.mark.parametrize(
    ("data", "delimiter", "header"),
    [
        (b"a;b;c\n1;2;3\n", ";", True),
        (b"a|b\n1|2\n", "|", True),
        (b'"a,x";b\n1;2\n', ";", True),
        (b"1,2\n3,4\n", ",", False),
        (b"a,a\n1,2\n", ",", False),
        (b"a,\n1,2\n", ",", False),
        (b"\xef\xbb\xbfa,b\n1,2\n", ",", True),
    ],
)
def test_the_first_row_tells_delimiter_and_header(data: bytes, delimiter: str, header: bool) -> None:
    found = split(data, "csv")
    assert (found.delimiter, found.header is not None) == (delimiter, header)
    if data.startswith(b"\xef"):
        assert found.header == (3, 7)


def test_an_array_under_a_key_is_found_where_it_has_elements() -> None:
    data = b'{"next": null, "errors": [], "deep": {"x": [1]}, "items": [ {"a": [1, 2]} , "x,y" , 3 ], "more": [4]}'
    found = split(data, "json")
    assert found.key == "items"
    assert [data[start:end] for start, end in found.spans] == [b'{"a": [1, 2]}', b'"x,y"', b"3"]
    assert not found.problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'"text"', "neither an array nor an object"),
        (b'{"a": 1}', "no array"),
        (b"[1, 2", "ends in the middle"),
        (b"", "ends in the middle"),
    ],
)
def test_what_has_no_records_says_why(data: bytes, problem: str) -> None:
    assert problem in split(data, "json").problem


def test_media_types_have_their_way_of_splitting() -> None:
    assert record_kind(kinds.JSON) == record_kind("application/geo+json") == "json"
    assert record_kind(kinds.TSV) == "tsv"
    assert record_kind("text/plain") == record_kind(kinds.LOG) == "lines"
    assert record_kind("image/png") is None


def test_elements_of_any_depth_are_whole() -> None:
    element = b'{"a":[[{"b":"]}"}]],"c":"\\""}'
    assert parts(b"[" + b" , ".join([element] * 3) + b"]", "json") == [element] * 3


def test_the_count_goes_on_over_chunks() -> None:
    rows = records.splitter("csv")
    assert [len(rows.feed(chunk)) for chunk in (b"a,b\n1", b",2\n3,4\n", b"5")] == [0, 2, 0]
    assert len(rows.close()) == 1
    assert rows.count == 3
