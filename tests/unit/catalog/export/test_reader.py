from typing import Any

import pytest

from tests.unit.catalog.export.schemas import exported, with_property, written


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (True, {}),
        ({"type": "dict"}, {"type": "object"}),
        ({"type": "float"}, {"type": "number"}),
        ({"type": "tuple", "items": {"type": "int"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "any", "description": "All."}, {"description": "All."}),
        ({"type": "HashMap"}, {"type": "object"}),
        ({"type": "String[]"}, {"type": "array"}),
        ({"type": "Map<String, Integer>"}, {"type": "object"}),
        ({"type": ""}, {}),
        ({"type": "string", "nullable": True}, {"type": ["string", "null"]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "minimum": "5", "maximum": True}, {"type": "integer"}),
        ({"type": "string", "minLength": -1, "maxLength": 2.0}, {"type": "string", "maxLength": 2}),
        ({"const": 5}, {"enum": [5]}),
        ({"type": "string", "enum": []}, {"type": "string"}),
        ({"type": "string", "enum": ["a", 1]}, {"type": "string", "enum": ["a"]}),
        ({"type": "number", "enum": [1, 2.5, True]}, {"type": "number", "enum": [1, 2.5]}),
        ({"type": "string", "enum": ["a"], "nullable": True}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "minimum": 3}, {"type": "string"}),
        ({"allOf": [{"type": "string"}], "description": "Text."}, {"description": "Text.", "type": "string"}),
        ({"oneOf": [{"type": "string"}]}, {"type": "string"}),
        ({"anyOf": [{"type": "string"}, False]}, {"type": "string"}),
        ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"allOf": [{"minimum": 1}, {"minimum": 3, "type": "number"}]}, {"type": "number", "minimum": 3}),
        ({"allOf": [{"type": "number"}, {"type": ["integer", "string"]}]}, {"type": "integer"}),
        ({"type": "array", "items": False}, {"type": "array", "maxItems": 0}),
        ({"type": "string", "format": "uri"}, {"type": "string", "format": "uri"}),
    ],
)
def test_what_becomes_of_a_schema(schema: Any, expected: Any) -> None:
    assert written(schema) == expected


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"not": {"const": 1}}, 'Must not match: {"const":1}'),
        ({"type": "string", "pattern": "(["}, "Pattern: (["),
        ({"type": "array", "contains": {"const": 1}, "minContains": 2}, 'has to contain: {"const":1}'),
        ({"$ref": "https://example.com/schema.json"}, "Described at https://example.com/schema.json"),
        (
            {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
            'Properties by pattern of their name: {"^x"',
        ),
        ({"type": "string", "required": True}, "Required"),
        ({"allOf": [{"pattern": "a"}, {"pattern": "b"}]}, "Pattern also: b"),
        ({"enum": list(range(2000))}, "One of 2000 values such as [0,1,2"),
    ],
)
def test_what_cannot_be_kept_is_told(schema: Any, words: str) -> None:
    assert words.lower() in written(schema)["description"].lower()


def test_properties_by_pattern_are_no_strangers_to_a_closed_object() -> None:
    schema = {"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False}
    assert written(schema)["additionalProperties"] == {"type": "string"}


def test_a_property_that_must_not_be_is_left_out_of_a_closed_object() -> None:
    schema = {"type": "object", "properties": {"a": False, "b": {}}, "additionalProperties": False}
    assert written(schema) == {"type": "object", "properties": {"b": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("reference", "extra"),
    [
        ("#/$defs/a", {"$defs": {"a": {"type": "string"}}}),
        ("#/definitions/a", {"definitions": {"a": {"type": "string"}}}),
        ("#/components/schemas/a~1b%20c", {"components": {"schemas": {"a/b c": {"type": "string"}}}}),
        ("#name", {"$defs": {"x": {"$anchor": "name", "type": "string"}}}),
        ("https://example.com/t#/$defs/a", {"$id": "https://example.com/t", "$defs": {"a": {"type": "string"}}}),
        ("part.json", {"$id": "https://example.com/t.json", "$defs": {"a": {"$id": "part.json", "type": "string"}}}),
        ("urn:x:part", {"$defs": {"a": {"$id": "urn:x:part", "type": "string"}}}),
        ("#/properties/q", {"properties": {"p": {"$ref": "#/properties/q"}, "q": {"type": "string"}}}),
        ("#/anyOf/0/properties/q", {"anyOf": [{"properties": {"q": {"type": "string"}}}]}),
    ],
)
def test_references_within_the_schema_are_followed(reference: str, extra: dict[str, Any]) -> None:
    schema = with_property({"$ref": reference}) | extra
    assert exported(schema)[1]["properties"]["p"] == {"type": "string"}


def test_a_base_uri_moves_the_root_that_pointers_start_at() -> None:
    inner = {
        "$id": "https://example.com/inner",
        "type": "array",
        "items": {"$ref": "#/$defs/a"},
        "$defs": {"a": {"type": "string"}},
    }
    schema = with_property({"$ref": "https://example.com/inner"}, **{"$defs": {"i": inner, "a": {"type": "number"}}})
    assert exported(schema)[1]["properties"]["p"] == {"type": "array", "items": {"type": "string"}}


def test_siblings_of_a_reference_count_from_2019_on() -> None:
    schema = with_property({"$ref": "#/$defs/a", "maxLength": 3, "description": "Here."})
    schema |= {"$defs": {"a": {"type": "string", "description": "There."}}}
    assert exported(schema)[1]["properties"]["p"] == {"type": "string", "maxLength": 3, "description": "Here."}
    old = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
    assert exported(old)[1]["properties"]["p"] == {"type": "string", "description": "Here."}


def test_recursion_stays_a_reference_for_openai_and_is_unrolled_elsewhere() -> None:
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}
    schema = with_property({"$ref": "#/$defs/tree"}, **{"$defs": {"tree": tree}})
    openai = exported(schema, "openai")[1]
    assert openai["properties"]["p"] == {"$ref": "#/$defs/tree"}
    assert openai["$defs"]["tree"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/tree"}
    end = {"description": "Again as described above", "type": "object"}
    one = {"type": "object", "properties": {"kids": {"type": "array", "items": end}}}
    two = {"type": "object", "properties": {"kids": {"type": "array", "items": one}}}
    assert exported(schema)[1]["properties"]["p"] == two
    assert exported(schema, "gemini")[1]["properties"]["p"] == two


def test_a_reference_to_the_root_is_kept_or_ends() -> None:
    schema = with_property({"$ref": "#"})
    assert exported(schema, "openai")[1]["$defs"] == {
        "root": {"type": "object", "properties": {"p": {"$ref": "#/$defs/root"}}}
    }
    assert "Again as described above" in str(exported(schema)[1])


def test_a_reference_to_itself_accepts_anything() -> None:
    definitions = {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
    schema = with_property({"$ref": "#/$defs/a"}, **{"$defs": definitions})
    assert exported(schema, "openai")[1]["$defs"]["a"] == {"description": "It refers to nothing but itself"}
    assert "type" not in exported(schema)[1]["properties"]["p"]


def test_a_definition_that_accepts_nothing_stays_a_schema() -> None:
    schema = with_property({"$ref": "#/$defs/a"}, **{"$defs": {"a": {"allOf": [False]}}})
    nothing = {"description": "Nothing can be given here", "type": "null"}
    assert exported(schema, "openai")[1]["$defs"] == {"a": nothing}
    assert exported(schema)[1]["properties"] == {}


def test_all_of_that_leads_to_itself_ends() -> None:
    node = {"allOf": [{"$ref": "#/$defs/node"}, {"properties": {"v": {"type": "string"}}}], "type": "object"}
    schema = with_property({"$ref": "#/$defs/node"}, **{"$defs": {"node": node}})
    for provider in ("openai", "anthropic", "gemini"):
        assert "v" in str(exported(schema, provider)[1])


def test_inherited_properties_are_merged() -> None:
    base = {"type": "object", "properties": {"id": {"type": "integer", "minimum": 1}}, "required": ["id"]}
    schema = {
        "allOf": [
            {"$ref": "#/$defs/base"},
            {"properties": {"id": {"maximum": 9}, "name": {"type": "string"}}, "required": ["name"]},
        ],
        "$defs": {"base": base},
    }
    made = exported(schema, "openai")[1]
    assert made["properties"] == {"id": {"type": "integer", "maximum": 9, "minimum": 1}, "name": {"type": "string"}}
    assert sorted(made["required"]) == ["id", "name"]
