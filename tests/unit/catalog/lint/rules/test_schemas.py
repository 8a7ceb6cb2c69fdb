from typing import Any

import pytest

from polyplex.catalog.lint.rules import schemas
from tests.unit.catalog.lint.offers import server, tool

Json = dict[str, Any]
S: Json = {"type": "string"}


def nested(depth: int) -> Json:
    schema = S
    for _ in range(depth - 1):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("properties", "more", "rules"),
    [
        ({"a": S}, {}, set[str]()),
        ({"a": {"type": "text"}}, {}, {"schema-invalid"}),
        ({"a": {"type": "number", "exclusiveMinimum": True}}, {}, {"schema-invalid"}),
        ({"a": {"$ref": "#/$defs/none"}}, {}, {"schema-reference"}),
        ({"a": {"$ref": "https://example.com/a.json"}}, {}, {"schema-reference"}),
        ({"a": {"$ref": "#/$defs/b"}}, {"$defs": {"b": S}}, set[str]()),
        ({"a": S}, {"required": ["a", "b"]}, {"required-unknown"}),
        ({"a": S}, {"required": ["b"], "allOf": [{"properties": {"b": S}}]}, {"schema-root-union"}),
        ({"a": S}, {"oneOf": [{"required": ["a"]}]}, {"schema-root-union"}),
        ({"a": {}}, {}, {"parameter-untyped"}),
        ({"a": {"description": "anything"}}, {}, {"parameter-untyped"}),
        ({"a": {"enum": [1, 2]}}, {}, set[str]()),
        ({"a": {"type": "object"}}, {}, {"parameter-shapeless"}),
        ({"a": {"type": "array"}}, {}, {"parameter-shapeless"}),
        ({"a": {"type": "array", "items": {}}}, {}, {"parameter-shapeless"}),
        ({"a": {"type": "object", "additionalProperties": S}}, {}, set[str]()),
        ({"a": {"type": "object", "description": 'headers, e.g. {"Accept": "*/*"}'}}, {}, set[str]()),
        ({"a": nested(3)}, {}, set[str]()),
        ({"a": nested(4)}, {}, {"schema-deep"}),
        ({f"p{number}": S for number in range(16)}, {}, {"parameters-many"}),
        ({f"p{number}": S for number in range(9)}, {"required": [f"p{n}" for n in range(9)]}, {"parameters-many"}),
        ({f"p{number}": S for number in range(15)}, {}, set[str]()),
        ({"userId": S, "user_id": S}, {}, {"parameter-twins"}),
        ({"a": S}, {"additionalProperties": True}, {"parameters-open"}),
        ({"a": S}, {"additionalProperties": False}, set[str]()),
        ({"a": {"type": "integer", "default": "3"}}, {}, {"parameter-default"}),
        ({"a": {"type": "number", "default": 3}}, {}, set[str]()),
        ({"a": {"type": "string", "default": None}}, {}, set[str]()),
        ({"a": {"enum": ["x", "y"], "default": "z"}}, {}, {"parameter-default"}),
        ({"a": {"anyOf": [S, {"type": "null"}], "default": "z"}}, {}, set[str]()),
    ],
)
def test_schemas_are_judged(properties: Json, more: Json, rules: set[str]) -> None:
    own = tool("t", "", properties, schema=more)
    assert {found.rule for rule in schemas.ALL for found in rule(own, server())} == rules


def test_the_older_drafts_are_valid_in_their_own_words() -> None:
    older = tool("t", "", {"a": S}, schema={"$schema": "http://json-schema.org/draft-07/schema#"})
    assert list(schemas.invalid(older, server())) == []


def test_what_follows_a_broken_schema_is_named_with_its_place() -> None:
    (found,) = schemas.invalid(tool("t", "", {"a": {"type": "text"}}), server())
    assert "properties/a/type" in found.message
    assert found.severity == "error"
