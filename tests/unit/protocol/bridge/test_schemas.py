import json
from typing import Any

import pytest

from polyplex.protocol.bridge.schemas import tool_for_legacy

INPUT: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
ANYTHING: dict[str, Any] = {"type": "object", "properties": {"result": {}}, "required": ["result"]}


def tool(**members: Any) -> bytes:
    return json.dumps({"name": "t", "inputSchema": INPUT} | members).encode()


@pytest.mark.parametrize(
    "given",
    [
        tool(),
        tool(description="true"),
        tool(annotations={"readOnlyHint": True}),
        tool(outputSchema={"type": "object", "properties": {"x": {"default": False}}}),
        tool(outputSchema={"type": "object", "properties": 5}),
        tool(outputSchema=5),
    ],
)
def test_what_legacy_revisions_allow_leaves_as_it_came(given: bytes) -> None:
    assert tool_for_legacy(given) is given


def test_the_schema_of_a_value_is_wrapped_like_the_value() -> None:
    schema: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}
    found = json.loads(tool_for_legacy(tool(outputSchema=schema, title="T")))
    assert found["outputSchema"] == ANYTHING | {"properties": {"result": schema}}
    assert (found["title"], found["inputSchema"]) == ("T", INPUT)
    nullable = {"type": ["string", "null"]}
    assert json.loads(tool_for_legacy(tool(outputSchema=nullable)))["outputSchema"]["properties"] == {
        "result": nullable
    }


def test_a_schema_that_refers_to_its_own_parts_would_not_find_them() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {}}}
    assert json.loads(tool_for_legacy(tool(outputSchema=schema)))["outputSchema"] == ANYTHING


@pytest.mark.parametrize(
    "schema", [{}, {"anyOf": [{"type": "object"}, {"type": "null"}]}, {"type": ["object", "null"]}]
)
def test_a_schema_of_what_may_be_an_object_or_not_is_left_out(schema: Any) -> None:
    assert "outputSchema" not in json.loads(tool_for_legacy(tool(outputSchema=schema)))


def test_schemas_that_are_true_or_false_become_objects() -> None:
    given = {"type": "object", "properties": {"any": True, "none": False, "a": {"const": True}}}
    mended = {"any": {}, "none": {"not": {}}, "a": {"const": True}}
    found = json.loads(tool_for_legacy(tool(inputSchema=given, outputSchema=given)))
    assert found["inputSchema"] == found["outputSchema"] == given | {"properties": mended}
