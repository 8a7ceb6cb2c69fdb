"""Parts of payloads against the whole: what readers give is what slicing, splitting or decoding all of it gives.

Blocks are a few bytes long here, so that every border is crossed.
"""

import math
import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from polyplex.content.records import split
from polyplex.errors import PayloadQueryError
from polyplex.store.reading.grep import SNIPPET_BYTES, finder, grep
from polyplex.store.reading.json_path import parse_path
from polyplex.store.reading.json_walk import read_json_path
from polyplex.store.reading.lines import LineIndex, read_lines
from polyplex.store.reading.pages import RecordIndex, read_page
from polyplex.store.reading.parts import Node
from polyplex.store.reading.window import Watch, Window, first_whole, last_whole

MUCH = 1 << 20
BLOCKS = st.integers(1, 40)
TEXTS = st.text("ab\"'\\,;\n\r\t {}[]:0é語😀", max_size=200)
NAMES = st.sampled_from(["a", "b", "c-d", "é", 'q"', "l\\", "n'"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9).map(lambda x: round(x, 2)) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=20
)


class Held:
    """A payload in memory."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_at(self, offset: int, length: int) -> bytes:
        return self.data[offset : offset + length]


def window_over(data: bytes, block_bytes: int) -> Window:
    return Window(Held(data), len(data), Watch(60), block_bytes)


@given(TEXTS, st.integers(0, 300), st.integers(0, 300))
def test_a_piece_of_text_that_ends_between_characters_loses_none(text: str, start: int, length: int) -> None:
    piece = text.encode()[start : start + length]
    kept = piece[first_whole(piece) : max(first_whole(piece), last_whole(piece))]
    assert len(piece) - len(kept) <= 6
    kept.decode()  # whole


@given(TEXTS, BLOCKS, st.integers(1, 5), st.integers(4, 60))
def test_parts_of_lines_make_up_the_whole(text: str, block: int, count: int, max_bytes: int) -> None:
    data = text.encode()
    window, index = window_over(data, block), LineIndex()
    lines = data.splitlines(keepends=True) if b"\r" not in data else re.findall(rb"[^\n]*\n|[^\n]+", data)
    read, line = b"", 1
    while read != data:
        part = read_lines(window, index, line, count, max_bytes)
        assert part.offset == len(read)
        assert part.total == len(lines)
        assert part.text.encode() == data[part.offset : part.end] and part.text
        read = data[: part.end]
        if part.cut:  # a line that does not fit is read on by its offset
            assert part.count == 1
            assert part.next_offset == part.end
            end = data.find(b"\n", part.end)
            read = data[: end + 1 if end >= 0 else len(data)]
            line = part.first + 1
        elif part.next_line is not None:
            assert part.next_line == part.first + part.count
            assert part.text.encode() == b"".join(lines[part.first - 1 : part.next_line - 1])
            line = part.next_line
    if lines:
        assert read_lines(window, index, -1, 1, MUCH).text.encode() == lines[-1]
        assert read_lines(window, LineIndex(), len(lines), 1, MUCH).text.encode() == lines[-1]
    with pytest.raises(PayloadQueryError):
        read_lines(window, index, len(lines) + 2, 1, MUCH)


@given(
    st.lists(st.text("abé .", max_size=12), max_size=30),
    st.text("abé.", min_size=1, max_size=3),
    st.booleans(),
    st.booleans(),
    st.integers(1, 4),
)
def test_grep_finds_the_lines_that_a_loop_over_them_finds(
    lines: list[str], pattern: str, regex: bool, ignore_case: bool, at_once: int
) -> None:
    text = "\n".join(line.swapcase() if ignore_case else line for line in lines)
    data = text.encode()
    if regex:
        expression = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
        expected = [n for n, line in enumerate(text.split("\n"), 1) if expression.search(line)]
    else:
        folded = pattern.lower() if ignore_case else pattern
        expected = [
            n for n, line in enumerate(text.split("\n"), 1) if folded in (line.lower() if ignore_case else line)
        ]
    find = finder(pattern, regex=regex, ignore_case=ignore_case)
    found: list[int] = []
    cursor, first = None, True
    while first or cursor is not None:
        window = window_over(data, 64)
        part = grep(window, find, context=1, max_matches=at_once, max_bytes=MUCH, cursor=cursor)
        for match in part.matches:
            assert match.text == text.split("\n")[match.line - 1]
            assert data[match.offset :].decode().startswith(match.text)
            assert match.before == tuple(text.split("\n")[max(0, match.line - 2) : match.line - 1])
        found += [match.line for match in part.matches]
        cursor, first = part.next_cursor, False
    assert found == expected


@given(st.integers(0, 40_000), st.integers(0, 40_000), st.booleans())
@settings(max_examples=30)
def test_grep_finds_what_is_in_a_very_long_line(before: int, after: int, regex: bool) -> None:
    data = b"first\n" + b"x" * before + "needle ü".encode() + b"y" * after + b"\nlast"
    find = (
        finder("needle .", regex=True, ignore_case=False)
        if regex
        else finder("needle ü", regex=False, ignore_case=False)
    )
    part = grep(window_over(data, 16 * 1024), find, context=0, max_matches=9, max_bytes=MUCH, cursor=None)
    assert part.matches
    for match in part.matches:
        assert match.line == 2
        assert len(match.text.encode()) <= 2 * SNIPPET_BYTES
    assert any("needle" in match.text for match in part.matches)
    if not regex:
        assert len(part.matches) == 1


@given(VALUES, BLOCKS, st.integers(0, 4), st.booleans())
def test_a_path_to_every_value_finds_just_that_value(value: Any, block: int, indent: int, spaced: bool) -> None:
    data = msgspec.json.format(msgspec.json.encode(value), indent=indent) if spaced else msgspec.json.encode(value)
    nodes = select(data, "$..*", block)
    assert [decoded(node) for node in nodes] == list(below(value))
    for node in [*nodes[:5], *nodes[-2:]]:
        (found,) = select(data, node.path, block)
        assert found == node


@given(
    st.lists(VALUES, max_size=200),
    BLOCKS,
    st.none() | st.integers(-220, 220),
    st.none() | st.integers(-220, 220),
    st.integers(1, 5),
)
@settings(max_examples=60)
def test_slices_and_indices_are_those_of_lists(
    items: list[Any], block: int, start: int | None, stop: int | None, step: int
) -> None:
    data = msgspec.json.encode({"before": [[[[[]]]]], "items": items})
    shown = f"{'' if start is None else start}:{'' if stop is None else stop}:{step}"
    for size in (block, 4096):
        assert [decoded(node) for node in select(data, f"$.items[{shown}]", size)] == items[start:stop:step]
        if start is not None:
            expected = [items[start]] if -len(items) <= start < len(items) else []
            assert [decoded(node) for node in select(data, f"items[{start}]", size)] == expected


@given(st.lists(st.integers(0, 9), min_size=60, max_size=300), st.integers(0, 299))
def test_large_steps_over_items_land_on_the_right_one(items: list[int], index: int) -> None:
    data = msgspec.json.encode([{"n": [{"v": [item]}]} if item % 2 else item for item in items])
    whole = msgspec.json.decode(data)
    assert [decoded(node) for node in select(data, f"$[{index}]", 512)] == whole[index : index + 1]
    assert [decoded(node) for node in select(data, f"$[-{index + 1}]", 512)] == (
        [whole[-index - 1]] if index < len(whole) else []
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", [{"a": [{"b": 1, "c": "x"}, {"b": 2.5, "c": "y"}, {"c": None}], "é-d": {"a": 7}}]),
        ("$.a[?@.b > 1].c", ["y"]),
        ("a[?@.b].c", ["x", "y"]),
        ("a[?!@.b]", [{"c": None}]),
        ("a[?@.b == 1 || @.c == 'y'].b", [1, 2.5]),
        ("a[?(@.b >= 1 && @.b <= 2)].c", ["x"]),
        ("$.a[?@.c == null]", [{"c": None}]),
        ('$.a[?@.c != "x"].c', ["y", None]),
        ("$['é-d'].a", [7]),
        ("$[\"\\u00e9-d\"]['a']", [7]),
        ("$..a", [[{"b": 1, "c": "x"}, {"b": 2.5, "c": "y"}, {"c": None}], 7]),
        ("$..b", [1, 2.5]),
        ("$.a[0,2].c", ["x", None]),
        ("$.a[*]['b','c']", [1, "x", 2.5, "y", None]),
        ("$.*.a", [7]),
        ("$.nothing.here[3]", []),
        ("$.a[?@.b == true]", []),
    ],
)
def test_paths_select_what_the_specification_says(path: str, expected: list[Any]) -> None:
    data = b'{"a":[{"b":1,"c":"x"}, {"b":2.5,"c":"y"},{"c":null}], "\\u00e9-d":{"a":7}}'
    for block in (1, 3, 7, 1000):
        assert [decoded(node) for node in select(data, path, block)] == expected


@given(st.text("$.[]*?@:,'\"\\ab01-()&|!=<> \n", max_size=30))
@example("[" * 999)
@example("$[?" + "(" * 900)
def test_a_path_is_parsed_or_refused(path: str) -> None:
    try:
        segments = parse_path(path)
    except PayloadQueryError as error:
        assert "JSON path" in str(error)
        return
    read_json_path(window_over(b'{"a":[1,{"b":"x"}]}', 5), segments, skip=0, limit=9, max_bytes=MUCH, lines=False)


@given(st.binary(max_size=80) | st.text('{}[]",:\\ 1tn', max_size=60).map(str.encode), BLOCKS)
@example(b'{"a":' * 500, 1000)
@example(b"[" * 5000, 1000)
@example(b'"\\', 1)
def test_what_is_no_json_is_refused_or_read_without_end(data: bytes, block: int) -> None:
    for path in ("$..a", "$[-1]", "$[5]", "$.a.b", "$[?@.a]"):
        try:
            select(data, path, block)
        except PayloadQueryError as error:
            assert "JSON path" in str(error) or "nests" in str(error)


@given(VALUES.filter(lambda value: isinstance(value, list)), st.integers(1, 3), st.integers(8, 40))
def test_values_that_do_not_fit_come_with_the_next_part(value: list[Any], limit: int, max_bytes: int) -> None:
    data, segments = msgspec.json.encode(value), parse_path("$[*]")
    found: list[Node] = []
    skip: int | None = 0
    while skip is not None:
        window = window_over(data, 16)
        part = read_json_path(window, segments, skip=skip, limit=limit, max_bytes=max_bytes, lines=False)
        assert len(part.nodes) <= limit
        assert sum(len(node.raw) for node in part.nodes) <= max_bytes
        found += part.nodes
        skip = part.next_skip
    assert [data[node.offset : node.end] for node in found] == [msgspec.json.encode(item) for item in value]
    assert all(node.cut == (node.end - node.offset > len(node.raw)) for node in found)


@given(
    st.lists(VALUES, max_size=60), st.integers(1, 7), BLOCKS, st.sampled_from(["array", "object", "jsonl"]), st.data()
)
@settings(max_examples=60)
def test_pages_make_up_the_records(
    items: list[Any], page_size: int, block: int, form: str, data: st.DataObject
) -> None:
    if form == "jsonl":
        content = b"\n".join(map(msgspec.json.encode, items))
    else:
        content = msgspec.json.encode(items if form == "array" else {"n": 1, "items": items, "z": [9]})
    if form == "object" and not items:
        return
    index = RecordIndex("jsonl" if form == "jsonl" else "json")
    pages = list(range(math.ceil(len(items) / page_size)))
    for number in data.draw(st.permutations(pages)):
        first = number * page_size
        window = window_over(content, block)
        part = read_page(window, index, first=first, page_size=page_size, max_bytes=MUCH)
        read = (
            [msgspec.json.decode(line) for line in part.text.splitlines()]
            if form == "jsonl"
            else msgspec.json.decode(part.text)
        )
        assert read == items[first : first + page_size]
        assert (part.page, part.pages, part.total) == (number + 1, len(pages), len(items))
        assert part.next_record == (first + page_size if first + page_size < len(items) else None)


@given(
    st.lists(st.lists(st.text('ab,"\n é', max_size=6), min_size=2, max_size=2), min_size=1, max_size=40),
    st.booleans(),
    st.integers(1, 5),
    BLOCKS,
    st.integers(64, 200),
)
def test_every_page_of_a_table_has_its_header(
    rows: list[list[str]], named: bool, page_size: int, block: int, max_bytes: int
) -> None:
    quoted = [",".join('"' + cell.replace('"', '""') + '"' for cell in row) + "\n" for row in rows]
    content = (("name,other\n" if named else "1,2\n") + "".join(quoted)).encode()
    expected = split(content, "csv")
    head = content[expected.header.start : expected.header.end].decode() if expected.header else ""
    texts, index, record = "", RecordIndex("csv"), 0
    while record is not None:
        window = window_over(content, block)
        part = read_page(window, index, first=record, page_size=page_size, max_bytes=max_bytes)
        assert part.text.startswith(head)
        texts += part.text.removeprefix(head)
        assert part.count or not expected.spans
        record = part.next_record
    assert texts.encode() == b"".join(content[span.start : span.end] for span in expected.spans)


def select(data: bytes, path: str, block: int) -> list[Node]:
    part = read_json_path(window_over(data, block), parse_path(path), skip=0, limit=MUCH, max_bytes=MUCH, lines=False)
    assert part.next_skip is None
    return part.nodes


def decoded(node: Node) -> Any:
    return msgspec.json.decode(node.raw)


def below(value: Any) -> Any:
    """Every value below a value, in the order of the document."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        yield item
        yield from below(item)
