import gzip
import json
import struct
from typing import Any

import pytest

from polyplex.content import kinds
from polyplex.content.preview import HEAD_BYTES, TAIL_BYTES, preview, text_of
from polyplex.content.tokens import estimate, tokenizer
from tests.unit.content.test_images import PICTURES
from tests.unit.content.test_kinds import archive, sound
from tests.unit.content.texts import CHINESE, KINDS, PROSE, _rows

ROWS = _rows(3000)


def shape(data: bytes, media_type: str = "", **options: Any) -> str:
    return preview(data[:HEAD_BYTES], media_type, len(data), tail=data[-TAIL_BYTES:], **options)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_a_preview_is_small_as_a_real_tokenizer_counts(name: str) -> None:
    data = (KINDS[name]() * 30).encode()
    assert tokenizer().count(shape(data)) < 420


def test_an_array_of_objects_shows_keys_types_ranges_and_the_number() -> None:
    said = shape(json.dumps(ROWS).encode())
    assert said.startswith("JSON array of about 3,0")
    assert "- id integer 10000–" in said
    assert "- loaded boolean" in said
    assert "- at date 2026-" in said
    assert "(37 empty)" not in said.partition("- weight_kg")[0]
    assert 'begins:\n[{"id": 10000' in said
    assert preview(json.dumps(ROWS).encode()[:HEAD_BYTES], "", 400_000, records_total=3000).startswith(
        "JSON array of 3,000 objects"
    )


def test_an_array_under_a_key_is_shown_with_the_other_keys() -> None:
    said = shape(json.dumps({"total": 3000, "next": None, "rows": ROWS}).encode())
    assert said.startswith("JSON object, {total: integer, next: null} and rows: array of about 3,0")


def test_a_small_json_is_counted_exactly() -> None:
    assert shape(json.dumps(ROWS[:7]).encode()).startswith("JSON array of 7 objects, keys:")
    assert shape(b'{"a": {"b": [1, 2], "c": "x"}}').startswith("JSON {a: {b: [2 integer], c: string}}")
    assert shape(b"[1, 2.5, null]").startswith("JSON array of 3 elements: [3 integer|number|null]")
    assert shape(b"[]").startswith("JSON []")


def test_json_lines_and_tables_show_columns() -> None:
    lines = "\n".join(json.dumps(row) for row in ROWS).encode()
    assert shape(lines).startswith("JSON lines, about 3,")
    said = shape(KINDS["CSV"]().encode())
    assert said.startswith(
        "CSV (comma) with a header, 150 rows, 6 columns (in the first 100 rows):\n- id integer 10000–"
    )
    assert shape(b"1\t2\n3\t4\n").startswith("TSV without a header, 2 rows, 2 columns:\n- column 1 integer 1–3")


def test_a_column_that_is_always_the_same_says_so() -> None:
    said = shape(b"id,state\n1,open\n2,open\n3,open\n")
    assert "- state string, always open" in said


def test_text_shows_its_beginning_and_its_end() -> None:
    text = "\n".join(f"line {number} of a long log" for number in range(50_000))
    said = shape(text.encode())
    assert "begins:\nline 0 of" in said
    assert said.endswith("ends:\n" + said.rpartition("ends:\n")[2])
    assert said.endswith("line 49999 of a long log")
    assert "lines, 1,238,889 bytes" in said or "bytes" in said.splitlines()[0]


def test_a_small_text_is_shown_once() -> None:
    said = shape(b"just a line\n")
    assert said == "Text, 1 line, 12 bytes\nbegins:\njust a line"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (PICTURES["PNG"], "PNG image, 640×480 pixels"),
        (PICTURES["SVG"], "SVG image, 640×480 pixels"),
        (sound(), "WAV sound, 0.1 s, 8,000 Hz, 1 channel"),
        (archive(), "Zip archive, 1 files: a.txt"),
        (gzip.compress(b"x" * 77, mtime=0), "Gzip, 77 bytes when unpacked"),
        (b"%PDF-1.7\n1 0 obj<</Type /Pages /Kids [] /Count 12>>", "PDF 1.7, 12 pages"),
        (
            b"SQLite format 3\0" + struct.pack(">H", 4096) + bytes(10) + struct.pack(">I", 9) + b"CREATE TABLE barges(",
            "SQLite database, 9 pages of 4,096 bytes: barges",
        ),
        (b"\0\1\2" + b"secret words here" + bytes(9), "Binary, 29 bytes, begins with 00 01 02 73"),
        (b"", "Empty"),
    ],
)
def test_headers_of_other_kinds_are_read(data: bytes, said: str) -> None:
    assert shape(data).startswith(said)


def test_what_is_declared_as_text_and_is_none_is_still_shown() -> None:
    assert shape(b"{broken", kinds.JSON).startswith("JSON that does not parse, 1 line")
    assert shape(b'{"a": 1\n{"b": ', kinds.JSON_LINES)
    assert shape(b"\xff\xfe\0\0", "text/csv")


def test_borders_of_parts_break_no_character() -> None:
    data = CHINESE.encode()
    for start in range(4):
        for end in range(4):
            assert text_of(data[start : len(data) - end]).strip("\ufffd") in CHINESE
            assert "\ufffd" not in text_of(data[start : len(data) - end])
    assert text_of(b"\x80\x80") == ""
    assert text_of(PROSE.encode()) == PROSE


def test_many_columns_and_wide_objects_are_cut_short() -> None:
    wide = json.dumps([{f"key{number}": number for number in range(500)}] * 3).encode()
    said = shape(wide)
    assert estimate(said) <= 300
    assert "more columns" in shape(wide, max_tokens=2000)


def test_an_element_that_is_cut_says_nothing_of_how_many_there_are() -> None:
    data = json.dumps([{"kind": "a", "text": "y" * 1_000_000}, {"kind": "b"}]).encode()
    assert "JSON array of 1 or more objects, keys (in the first 1)" in shape(data)
