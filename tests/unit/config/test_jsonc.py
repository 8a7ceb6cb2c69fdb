"""The reader equals a JSON parser on JSON, tells the line of everything, and fails only by ConfigError."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.config.jsonc import MAX_BYTES, MAX_DEPTH, Document, parse
from polyplex.errors import ConfigError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=30)
FILLERS = st.lists(
    st.sampled_from([" ", "\t", "\n", "\r\n", "\r", "/* * / // */", "/**/", "/***/", '// " {[,:\n', "//\r\n"]),
    max_size=3,
).map("".join)
JUNK_PIECES = st.sampled_from(
    ['{"', '"', '":', "[", "]", "}", ",", "//", "/*", "*/", "\\u", "\\", "1e", "-", "true", "\n", "é"]
)


def failure(text: bytes | str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parse(text, Path("f.json"))
    return caught.value


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_json_reads_as_json(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse(text).value == json.loads(text)
    assert parse(text.encode()).value == json.loads(text)


@given(VALUES, st.data())
def test_comments_and_trailing_commas_change_nothing(value: object, data: st.DataObject) -> None:
    assert parse(_decorated(value, data)).value == value


def _decorated(value: object, data: st.DataObject) -> str:
    """JSON text of the value with a filler at every place that may hold one."""

    def fill() -> str:
        return data.draw(FILLERS)

    match value:
        case dict():
            members = [f"{fill()}{json.dumps(key)}{fill()}:{_decorated(item, data)}" for key, item in value.items()]
            inside, brackets = members, "{}"
        case list():
            inside, brackets = [_decorated(item, data) for item in value], "[]"
        case _:
            return fill() + json.dumps(value) + fill()
    comma = data.draw(st.sampled_from(["", ","])) if inside else ""
    return fill() + brackets[0] + ",".join(inside) + comma + fill() + brackets[1] + fill()


@given(st.lists(JUNK_PIECES | st.text(max_size=3), max_size=40).map("".join))
def test_junk_is_read_or_refused(text: str) -> None:
    try:
        document = parse(text)
    except ConfigError as error:
        assert 1 <= error.line <= text.count("\n") + text.count("\r") + 1
    else:
        assert document.lines[()] >= 1


@given(st.binary(max_size=60))
def test_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        parse(content)
    except ConfigError as error:
        assert error.line >= 1


def test_every_key_and_item_has_its_line() -> None:
    text = '\ufeff// one\r\n{ "a": [1,\r\n  2,\r\n {"b": /* \r\n */ true}],\n\n"c":\rnull,}'
    assert parse(text) == Document(
        {"a": [1, 2, {"b": True}], "c": None},
        {(): 2, ("a",): 2, ("a", 0): 2, ("a", 1): 3, ("a", 2): 4, ("a", 2, "b"): 4, ("c",): 7},
    )


def test_what_is_not_in_the_text_has_the_line_of_what_holds_it() -> None:
    document = parse('{\n"a": {\n"b": 1}}')
    assert [document.line(path) for path in ((), ("a",), ("a", "x"), ("a", "b", 0), ("z",))] == [1, 2, 2, 3, 1]
    assert Document(None).line(("a",)) == 0


def test_a_duplicate_key_names_both_lines() -> None:
    error = failure('{"a": {\n"x": 1,\n\n"x": 2}}')
    assert (str(error), error.line) == ("f.json:4: the key 'x' appears twice, first in line 2", 4)
    assert parse('{"a": {"x": 1}, "b": {"x": 1}}').value == {"a": {"x": 1}, "b": {"x": 1}}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", 1, "the file is empty"),
        ("// only\n", 2, "the file is empty"),
        ('{"a": 1\n"b": 2}', 2, 'expected "," or "}", found a string'),
        ("[1\n2]", 2, 'expected "," or "]", found number'),
        ('{"a" 1}', 1, 'expected ":" after the key'),
        ("{a: 1}", 1, "expected a key in double quotes"),
        ("{'a': 1}", 1, "unexpected"),
        ("[1,,2]", 1, "expected a value, found ','"),
        ("{,}", 1, "expected a key"),
        ("[,]", 1, "expected a value"),
        ("[True]", 1, "expected a value, found 'True'"),
        ("[\n1] 2", 2, "expected the end of the file"),
        ('["a\nb"]', 1, "a string is never closed, or holds a line break"),
        ('["a', 1, "a string is never closed"),
        ("[1 /* x\n", 1, "a comment is never closed"),
        ("[01]", 1, "unexpected '0'"),
        ("[1.]", 1, "unexpected '1'"),
        ("[+1]", 1, "unexpected '+'"),
        ("[NaN]", 1, "expected a value, found 'NaN'"),
        ("[1e999]", 1, "out of range"),
        ('["\\x"]', 1, "not valid JSON"),
        ('["\\ud800"]', 1, "not valid JSON"),
        ('["\ud800"]', 1, "not valid JSON"),
        ("[", 1, "found the end of the file"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, line: int, words: str) -> None:
    error = failure(text)
    assert words in error.message
    assert error.line == line


def test_text_that_is_not_utf8_is_refused_with_its_line() -> None:
    assert failure(b'{\n"a": "\xff"}').line == 2
    assert "UTF-8" in failure('{"a": 1}'.encode("utf-16")).message


def test_strings_of_a_text_are_not_shown() -> None:
    assert "hunter2" not in str(failure('{"token" "hunter2"}'))


def test_depth_is_bounded() -> None:
    deep = MAX_DEPTH - 1
    assert parse("[" * deep + "1" + "]" * deep).value
    assert "nested deeper" in failure("[" * 100_000).message
    assert "nested deeper" in failure('{"a":' * 100_000).message


def test_size_is_bounded() -> None:
    assert "larger than" in failure(b" " * (MAX_BYTES + 1)).message


@pytest.mark.parametrize("piece", ["/*", "/**", '"', '\\"', "//", '"\\', "1", "-", "a", "*", "\r", "{", "[1,"])
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    """A quadratic reader would need minutes for these and run into the time-out of the test."""
    text = "[" + piece * (MAX_BYTES // 2 // len(piece))
    assert failure(text).line >= 1
