from typing import Any

import pytest

from tests.unit.catalog.export.schemas import exported, with_property, written


def discriminated() -> dict[str, Any]:
    def form(kind: str, name: str) -> dict[str, Any]:
        properties = {"op": {"const": kind}, name: {"type": "string"}}
        return {"properties": properties, "required": ["op", name], "additionalProperties": False}

    return {"type": "object", "oneOf": [form("make", "name"), form("drop", "id")]}


def test_a_root_union_of_closed_forms_becomes_one_closed_object() -> None:
    for provider in ("openai", "anthropic", "gemini"):
        schema = exported(discriminated(), provider)[1]
        assert schema["properties"]["op"] == {"type": "string", "enum": ["make", "drop"]}
        assert schema["properties"]["name"] == schema["properties"]["id"] == {"type": "string"}
        assert schema["required"] == ["op"]
        assert schema["additionalProperties"] is False


def test_a_root_union_of_open_forms_keeps_room_for_what_they_do_not_name() -> None:
    schema = {"anyOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "integer"}}}]}
    made = exported(schema)[1]
    assert made["properties"]["a"] == {"anyOf": [{"type": "string"}, {}]}
    strict = exported(schema, "openai", strict=True)[1]
    assert strict["properties"]["a"] == {"type": ["string", "null"]}


def test_variants_of_a_property_become_a_union_and_one_and_true_stay_two_values() -> None:
    forms = [{"properties": {"a": {"enum": [1]}}, "required": ["a"]}, {"properties": {"a": {"enum": [True]}}}]
    enum = exported({"type": "object", "anyOf": forms})[1]["properties"]["a"]["enum"]
    assert [type(value) for value in enum] == [int, bool]


def test_branches_that_cannot_be_objects_are_left_out_at_the_root() -> None:
    schema = {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"a": {"type": "string"}}}]}
    assert exported(schema)[1] == {"type": "object", "properties": {"a": {"type": "string"}}}


def test_a_root_of_very_many_forms_stays_an_object() -> None:
    forms = [{"properties": {f"p{number}": {}}, "required": [f"p{number}"]} for number in range(500)]
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": forms}
    assert exported(schema)[1]["properties"] == {"a": {"type": "string"}}


def test_a_tuple_is_a_list_of_its_members_where_there_are_no_tuples() -> None:
    pair = {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False}
    assert written(pair) == {"type": "array", "maxItems": 2, "prefixItems": [{"type": "string"}, {"type": "integer"}]}
    assert written(pair, "openai") == {
        "description": "Members by position: string; integer",
        "type": "array",
        "maxItems": 2,
        "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
    }
    old = {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "integer"}}
    assert written(old)["items"] == {"type": "integer"}


def test_gemini_gets_one_type_and_enums_of_texts_and_numbers() -> None:
    assert written({"enum": ["a", 1, None]}, "gemini") == {
        "description": 'One of ["a",1,null]',
        "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, {"type": "null"}],
    }
    assert written({"type": ["string", "null"]}, "gemini") == {"type": ["string", "null"]}
    assert written({"enum": [True]}, "gemini") == {"description": "One of [true]", "type": "boolean"}


def test_gemini_openapi_says_null_by_nullable() -> None:
    optional = {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}
    assert written(optional, "gemini", form="openapi") == {
        "description": "Default: null",
        "type": "STRING",
        "nullable": True,
    }
    assert written({"type": ["integer", "null"]}, "gemini", form="openapi") == {"type": "INTEGER", "nullable": True}


def test_an_exclusive_bound_is_the_next_whole_number_where_only_inclusive_ones_are_known() -> None:
    between = {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9.5}
    assert written(between, "gemini") == {"type": "integer", "maximum": 9, "minimum": 1}
    number = {"type": "number", "exclusiveMinimum": 0}
    assert written(number, "gemini") == {"description": "More than 0", "type": "number", "minimum": 0}
    assert written({**number, "minimum": 3}, "gemini")["minimum"] == 3


def test_null_in_several_ways_is_null() -> None:
    ways = [{"type": "null", "description": "One."}, {"enum": [None], "description": "Two."}]
    assert written({"anyOf": ways}, "gemini", form="openapi") == {"type": "NULL"}
    assert written({"enum": [None], "anyOf": [{}, {}]}, "gemini", form="openapi") == {
        "description": "One of [null]",
        "type": "NULL",
    }


def test_what_an_enum_rules_out_is_not_described() -> None:
    schema = {"enum": [1.5, "a"], "properties": {"x": {}}, "additionalProperties": {"required": ["y"]}, "minItems": 2}
    strict = exported(with_property(schema, required=["p"]), "openai", strict=True)[1]
    assert strict["properties"]["p"] == {"type": ["string", "number"], "enum": [1.5, "a"]}


def test_required_properties_are_described_where_a_provider_wants_them_defined() -> None:
    schema = {"type": "object", "required": ["a"], "additionalProperties": {"type": "string"}}
    assert exported(schema, "gemini")[1]["properties"] == {"a": {"type": "string"}}


def test_lost_constraints_are_told_in_the_description() -> None:
    schema = {"type": "string", "minLength": 2, "pattern": "^a", "format": "uri", "default": "ab", "examples": ["ac"]}
    assert written(schema, "gemini")["description"] == (
        'Default: "ab"; for example "ac"; format: uri; at least 2 characters; pattern: ^a'
    )


def test_strict_mode_has_no_lookaround() -> None:
    schema = with_property({"type": "string", "pattern": "^(?!x)"}, required=["p"])
    assert exported(schema, "openai", strict=True)[1]["properties"]["p"] == {
        "description": "Pattern: ^(?!x)",
        "type": "string",
    }


@pytest.mark.parametrize(("provider", "options"), [("openai", {"strict": True}), ("gemini", {"form": "openapi"})])
def test_properties_of_conditions_can_be_given_where_objects_are_closed(provider: str, options: dict[str, Any]) -> None:
    schema = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "if": {"properties": {"kind": {"const": "a"}}},
        "then": {"properties": {"size": {"type": "integer"}}, "required": ["size"]},
        "else": {"properties": {"size": {"type": "string"}}},
        "dependentSchemas": {"kind": {"properties": {"more": {"type": "boolean"}}}},
    }
    _, found = exported(schema, provider, **options)
    assert set(found["properties"]) == {"kind", "size", "more"}
    _, found = exported(schema | {"additionalProperties": False}, provider, **options)
    assert set(found["properties"]) == {"kind"}
