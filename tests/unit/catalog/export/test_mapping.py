from typing import Any

import pytest

from tests.unit.catalog.export.schemas import exported, with_property


def test_renamed_properties_are_mapped_back_wherever_they_stand() -> None:
    schema = {
        "type": "object",
        "properties": {
            "filter[id]": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"größe": {"type": "integer"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"$top": {}}}},
        },
        "required": ["filter[id]"],
    }
    made, written = exported(schema)
    top, size, inner = (
        next(iter(written["properties"])),
        next(iter(written["properties"]["list"]["items"]["properties"])),
        next(iter(written["properties"]["map"]["additionalProperties"]["properties"])),
    )
    assert written["required"] == [top]
    given = {top: "x", "list": [{size: 1, "other": 2}], "map": {"k": {inner: 3}}, "$free": {"a": 1}}
    back = {"filter[id]": "x", "list": [{"größe": 1, "other": 2}], "map": {"k": {"$top": 3}}, "$free": {"a": 1}}
    assert made.original("tool", given) == ("tool", back)
    assert made.arguments_for("tool", back) == ("tool", given)
    # A model that knows the tool's own name may use it.
    assert made.original("tool", {"filter[id]": "y"}) == ("tool", {"filter[id]": "y"})


def test_a_made_name_never_meets_one_that_is_there() -> None:
    first = next(iter(exported({"type": "object", "properties": {"a b": {}}})[1]["properties"]))
    made, written = exported({"type": "object", "properties": {"a b": {}, first: {}}})
    assert len(written["properties"]) == 2
    assert first in written["properties"]
    other = next(name for name in written["properties"] if name != first)
    assert made.original("tool", {first: 1, other: 2}) == ("tool", {first: 1, "a b": 2})


def test_names_in_a_union_are_those_of_the_branch_that_fits() -> None:
    one = {"type": "object", "properties": {"kind": {"const": "one"}, "x y": {"type": "string"}}, "required": ["kind"]}
    two = {"type": "object", "properties": {"kind": {"const": "two"}, "x y": {"type": "integer"}}, "required": ["kind"]}
    made, written = exported(with_property({"oneOf": [one, two]}))
    name = list(written["properties"]["p"]["anyOf"][1]["properties"])[1]
    assert made.original("tool", {"p": {"kind": "two", name: 2}})[1] == {"p": {"kind": "two", "x y": 2}}
    # Nothing fits: the first branch of the type is taken, and the server says what is wrong.
    assert made.original("tool", {"p": {"kind": "three", name: 2}})[1] == {"p": {"kind": "three", "x y": 2}}
    assert made.original("tool", {"p": 5})[1] == {"p": 5}


def test_null_means_absent_in_strict_mode_where_the_server_takes_no_null() -> None:
    schema = {
        "type": "object",
        "properties": {
            "must": {"type": ["string", "null"]},
            "may": {"type": "string", "enum": ["a"]},
            "may_be_null": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "nested": {"type": "object", "properties": {"x": {"type": "integer"}}},
        },
        "required": ["must"],
    }
    made, written = exported(schema, "openai", strict=True)
    assert written["required"] == list(schema["properties"])
    assert written["properties"]["may"] == {"type": ["string", "null"], "enum": ["a", None]}
    nested = {"type": "object", "properties": {"x": {"type": ["integer", "null"]}}, "required": ["x"]}
    assert written["properties"]["nested"] == {"anyOf": [{**nested, "additionalProperties": False}, {"type": "null"}]}
    nulls = {"must": None, "may": None, "may_be_null": None, "nested": None}
    assert made.original("tool", nulls)[1] == {"must": None, "may_be_null": None}
    assert made.original("tool", {**nulls, "nested": {"x": None}})[1]["nested"] == {}
    assert made.arguments_for("tool", {"must": "x"})[1] == {
        "must": "x",
        "may": None,
        "may_be_null": None,
        "nested": None,
    }


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {"a": [1, None, "x"]}),
        ({}, "text"),
        ({}, None),
        ({}, 12345678901234567890),
        ({"type": "object"}, {"any": {"thing": 1.5}}),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}),
        ({"type": "array"}, [1, "x", {"a": []}]),
        ({"type": ["string", "object"]}, "{not json"),
        ({"type": ["string", "object"]}, {"a": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "object"}]}, 3),
        ({"anyOf": [{"type": "integer"}, {"type": "object"}]}, {"a": "b"}),
        ({"anyOf": [{"type": "array", "items": {}}, {"type": "object"}]}, [[1]]),
    ],
)
def test_what_has_no_type_of_its_own_travels_as_json_text(schema: Any, value: Any) -> None:
    for provider, options in (("openai", {"strict": True}), ("gemini", {"form": "openapi"})):
        made, _ = exported(with_property(schema, required=["p"]), provider, **options)
        _, given = made.arguments_for("tool", {"p": value})
        assert made.original("tool", given) == ("tool", {"p": value})


@pytest.mark.parametrize("text", ["", "{", "NaN", "[" * 100_000, "plain words", '{"a": Infinity}'])
def test_text_that_is_no_json_stays_text(text: str) -> None:
    made, _ = exported(with_property({"description": "Any."}), "openai", strict=True)
    assert made.original("tool", {"p": text}) == ("tool", {"p": text})


def test_a_value_where_json_text_was_asked_for_is_taken() -> None:
    made, _ = exported(with_property({"type": "object"}), "openai", strict=True)
    assert made.original("tool", {"p": {"a": 1}}) == ("tool", {"p": {"a": 1}})


def test_recursive_values_are_mapped_to_their_depth() -> None:
    tree = {"type": "object", "properties": {"kid": {"$ref": "#/$defs/tree"}, "n": {"type": "integer"}}}
    made, _ = exported(with_property({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": tree}}), "openai", strict=True)
    value: dict[str, Any] = {"n": 0}
    for number in range(20):
        value = {"kid": value, "n": number}
    _, given = made.arguments_for("tool", {"p": value})
    assert made.original("tool", given) == ("tool", {"p": value})


def test_unions_in_unions_do_not_take_for_ever() -> None:
    """Each level can be read in two ways that differ at the very end only."""
    schema: dict[str, Any] = {"type": "object", "properties": {"a b": {"const": 1}}, "required": ["a b"]}
    value: Any = {"a b": 2}
    for _ in range(30):
        level = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
        schema = {"anyOf": [level, {**level, "title": "Other"}]}
        value = {"x": value}
    made, _ = exported(with_property(schema))
    # 2^30 ways would take days, far beyond the time limit of a test.
    assert made.original("tool", {"p": value})[1]["p"].keys() == {"x"}
    made.arguments_for("tool", {"p": value})


def test_arguments_pass_untouched_where_nothing_was_changed() -> None:
    made, _ = exported(with_property({"type": "string"}))
    deep: Any = {}
    for _ in range(500):
        deep = {"x": [deep]}
    assert made.original("tool", {"p": deep})[1]["p"] is deep


def test_free_values_of_one_form_may_be_left_out_in_strict_mode() -> None:
    tree = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    free = {"type": "object", "properties": {"b": {}, "c": {"type": "object"}}, "additionalProperties": False}
    made, _ = exported(with_property({"anyOf": [tree, free]}), "openai", strict=True)
    name = next(iter(made.declarations[0]["function"]["parameters"]["properties"]))
    for value in ({}, {"b": 1}, {"c": {"d": None}}):
        given = made.arguments_for("tool", {name: value})[1]
        assert set(given[name]) == {"b", "c"}
        assert made.original("tool", given)[1] == {name: value}
