"""A tool in one line."""

import json
from typing import Any

import pytest

from polyplex.catalog.signatures import MAX_SIGNATURE, compact, one_line, shortened, signature, summary, type_of
from polyplex.mux.entries import Entry

Json = dict[str, Any]


def entry(**fields: Any) -> Entry:
    return Entry("s", "t", "s__t", json.dumps({"name": "s__t"} | fields).encode())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "any"),
        ({"type": "string"}, "string"),
        ({"type": "string", "format": "date"}, "string(date)"),
        ({"type": ["string", "null"]}, "string|null"),
        ({"enum": ["a", 1, None]}, '"a"|1|null'),
        ({"const": "x"}, '"x"'),
        ({"enum": list(range(20))}, "0|1|2|3|4|5|6|7|…"),
        ({"type": "array"}, "any[]"),
        ({"type": "array", "items": {"enum": [1, 2]}}, "(1|2)[]"),
        ({"items": {"type": "number"}}, "number[]"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "string"}]}, "string|integer"),
        ({"type": "object"}, "object"),
        ({"properties": {"a": {"type": "string"}, "b": {}}, "required": ["b"]}, "{b: any, a?: string}"),
        ({"$ref": "#/$defs/x"}, '"r"'),
        ({"$ref": "#/$defs/loop"}, "any"),
        ({"$ref": "https://elsewhere/x", "type": "string"}, "string"),
        ({"type": 7}, "any"),
        (True, "any"),
        ([], "any"),
    ],
)
def test_types(schema: object, expected: str) -> None:
    root = {"$defs": {"x": {"const": "r"}, "loop": {"$ref": "#/$defs/loop"}}}
    assert type_of(schema, root) == expected


def test_required_parameters_come_first_and_defaults_are_told() -> None:
    schema = {
        "properties": {
            "b": {"type": "integer", "default": 3},
            "a b": {"type": "string"},
            "long": {"default": "x" * 50},
        },
        "required": ["a b", 7],
    }
    assert signature("n", {"inputSchema": schema}) == 'n("a b": string, b?: integer = 3, long?: any)'


def test_prompts_have_arguments() -> None:
    prompt = entry(description="Greets.", arguments=[{"name": "who", "required": True}, {"name": "how"}])
    assert compact(prompt) == "s__t(who, how?) – Greets."


def test_signatures_are_bounded_and_say_what_is_left_out() -> None:
    many = {f"parameter_{number}": {"enum": ["x" * 100] * 50} for number in range(300)}
    text = signature("n", {"inputSchema": {"properties": many}})
    assert len(text) < MAX_SIGNATURE + 40
    shown = text.count("parameter_")
    assert text.endswith(f", … {300 - shown} more)")


def test_recursive_schemas_end() -> None:
    node: Json = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "all": {"anyOf": [{"$ref": "#"}] * 9}},
    }
    assert len(signature("n", {"inputSchema": node})) < MAX_SIGNATURE + 40


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"description": "Reads a file.\nMore of it."}, "Reads a file."),
        ({"description": "Reads files, e.g. text. Then more."}, "Reads files, e.g. text."),
        ({"description": "读取文件。更多"}, "读取文件。"),
        ({"description": "", "title": "A title"}, "A title"),
        ({"description": None}, ""),
        ({"description": "word " * 100}, shortened("word " * 100, 240)),
        ({}, ""),
    ],
)
def test_summaries(fields: Json, expected: str) -> None:
    assert summary(fields) == expected


def test_what_cannot_be_read_still_has_a_name() -> None:
    assert compact(Entry("s", "t", "s__t", b'{"inputSchema":' + b"[" * 5000)) == "s__t()"
    assert compact(entry(inputSchema=[], description=5)) == "s__t() – 5"


def test_nothing_steers_a_terminal_or_turns_a_text() -> None:
    assert one_line("a\x1b[31m\u202eb\x00\u2066 c\td\x85e") == "a[31mb c d e"


def test_a_million_choices_are_not_all_read() -> None:
    many = {"properties": {"a": {"enum": [{"x": number} for number in range(200_000)]}}}
    assert signature("t", {"inputSchema": many}).count("|") == 8
