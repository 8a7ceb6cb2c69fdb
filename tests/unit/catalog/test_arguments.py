"""What is told of arguments that do not fit."""

import json
from typing import Any

import pytest

from polyplex.catalog import arguments as module
from polyplex.catalog.arguments import Checker, nearest, unknown_names

Json = dict[str, Any]


def problems(schema: object, value: object) -> list[str]:
    return Checker().problems(json.dumps(schema).encode(), json.dumps(value).encode())


NESTED: Json = {
    "$defs": {
        "C": {
            "type": "object",
            "properties": {"d": {"type": ["string", "null"]}},
            "required": ["d"],
            "additionalProperties": False,
        }
    }
}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"required": ["a"]}, {}, ["a: missing"]),
        (
            {"properties": {"a": {"type": "string", "description": "The a."}}, "required": ["a"]},
            {},
            ["a: missing (string): The a."],
        ),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "ten"}, ['a: expected integer, got "ten"']),
        ({"properties": {"a": {"enum": ["x", "y"]}}}, {"a": None}, ['a: expected "x"|"y", got null']),
        ({"properties": {"a": {"const": 1}}}, {"a": 2}, ["a: expected 1, got 2"]),
        ({"properties": {"a": {"maximum": 5}}}, {"a": 7}, ["a: 7 is greater than the maximum of 5"]),
        ({"properties": {"path": {}}, "additionalProperties": False}, {"pth": 1}, ["pth: unknown; did you mean path?"]),
        (
            {"properties": {"filePath": {}}, "additionalProperties": False},
            {"file_path": 1},
            ["file_path: unknown; did you mean filePath?"],
        ),
        (
            {"properties": {"a": {}, "b": {}}, "additionalProperties": False},
            {"zzzz": 1},
            ["zzzz: unknown; known are a, b"],
        ),
        ({"additionalProperties": False}, {"a": 1}, ["a: unknown"]),
        (
            NESTED | {"properties": {"c": {"$ref": "#/$defs/C"}}},
            {"c": {"d": 5, "e": 1}},
            ["c.d: expected string|null, got 5", "c.e: unknown; known are d"],
        ),
        ({"properties": {"a": {"items": {"type": "string"}}}}, {"a": ["x", 1]}, ["a[1]: expected string, got 1"]),
        ({"type": "object"}, [], ["the arguments: expected object, got []"]),
        (
            {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
            {"a": 1},
            ["a: 1 fits none of: string|null"],
        ),
        (
            {"properties": {"a": {"type": "string"}}},
            {"a": {"x": "y" * 200}},
            ['a: expected string, got {"x": "' + "y" * 72 + "…"],
        ),
    ],
)
def test_each_problem_is_a_line(schema: Json, value: object, expected: list[str]) -> None:
    assert problems(schema, value) == expected


def test_what_fits_has_no_problem() -> None:
    assert problems({"properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"a": 1, "b": 2}) == []


def test_the_alternative_that_fits_best_is_named() -> None:
    schema = {"anyOf": [{"required": ["x"]}, {"required": ["y", "z"]}]}
    assert problems(schema, {"y": 1}) == ['the arguments: {"y": 1} fits none of: any; "x" is a required property']


@pytest.mark.parametrize(
    "schema",
    [
        b"{",
        b"[]",
        b'{"type": 7}',
        b'{"$ref": "http://127.0.0.1:1/schema"}',
        b'{"$ref": "file:///etc/passwd"}',
        b'{"$ref": "#/nowhere"}',
        b'{"properties": {"a": {"pattern": "("}}}',
    ],
)
def test_a_schema_that_is_broken_or_elsewhere_checks_nothing(schema: bytes) -> None:
    assert Checker().problems(schema, b'{"a": 1}') == []


@pytest.mark.parametrize("value", [b"{", b"\xff", b"[" * 5000, b'{"a": 1' + b"0" * 400 + b"}"])
def test_arguments_that_cannot_be_read_are_left_to_others(value: bytes) -> None:
    assert Checker().problems(b'{"properties": {"a": {"type": "number"}}}', value) == []


def test_large_arguments_are_left_to_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    assert Checker().problems(b'{"required": ["a"]}', b'{"b": "12345"}') == []


@pytest.mark.parametrize("value", [b"{", b'{"a": "%b"}' % (b"x" * 1024 * 1024)])
def test_what_cannot_be_checked_is_a_problem_where_it_has_to_be(value: bytes) -> None:
    (line,) = Checker().problems(b"{}", value, strict=True)
    assert line.startswith("the arguments: ")


def test_problems_and_compiled_schemas_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KEPT", 2)
    checker = Checker()
    for number in range(4):
        schema = {"required": [f"{number}-{each}" for each in range(100)]}
        assert len(checker.problems(json.dumps(schema).encode(), b"{}")) == module.MAX_PROBLEMS
    assert len(checker._kept) == 2  # pyright: ignore[reportPrivateUsage]


def test_names_that_are_allowed_but_not_known_are_told_on_request() -> None:
    schema = json.dumps({"properties": {"path": {}}}).encode()
    assert unknown_names(schema, b'{"pathh": 1, "path": 2}') == ["pathh: unknown; did you mean path?"]
    assert unknown_names(b"{}", b'{"a": 1}') == unknown_names(b"{", b"{}") == []


def test_the_nearest_name() -> None:
    assert nearest("FILE-PATH", ["a", "file_path"]) == "file_path"
    assert nearest("xyz", ["abc"]) is None
    assert nearest("", []) is None


def test_many_unknown_names_are_not_all_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []

    def close(name: str, known: list[str], count: int) -> list[str]:
        compared.append(max(map(len, [name, *known])))
        return []

    monkeypatch.setattr(module.difflib, "get_close_matches", close)
    known: Json = {f"name_{number}": {} for number in range(100)} | {"n" * 10_000: {}}
    value = {f"nema_{number}_{'x' * 500}": 1 for number in range(500)}
    told = problems({"properties": known, "additionalProperties": False}, value)
    assert len(told) == module.MAX_PROBLEMS
    unknown_names(json.dumps({"properties": known}).encode(), json.dumps(value).encode())
    assert len(compared) <= 2 * module.MAX_PROBLEMS
    assert max(compared) <= module.LONGEST_LIKE


def test_what_would_take_too_long_to_check_is_left_to_the_server() -> None:
    schema: Json = {"properties": {"a": {"items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}}}
    assert problems(schema, {"a": ["x"] * 100_000}) == []
    assert len(problems(schema, {"a": ["x"] * 3_000})) == 1  # the first alone
    assert len(problems(schema, {"a": ["x"] * 500})) == module.MAX_PROBLEMS
    strict = Checker().problems(json.dumps(schema).encode(), json.dumps({"a": ["x"] * 100_000}).encode(), strict=True)
    assert strict == ["the arguments: too many to be checked"]
