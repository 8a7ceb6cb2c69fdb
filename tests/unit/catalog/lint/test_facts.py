import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.lint.facts import choices_of, parameters_of, pointed, read_tool, resolved, types_of
from polyplex.mux.entries import Entry
from tests.unit.catalog.lint.offers import tool

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["properties", "items", "anyOf", "allOf", "type", "required", "$ref", "enum", "a", "description"]
            )
            | st.text(max_size=4),
            inner,
            max_size=4,
        )
    ),
    max_leaves=30,
)


def test_parameters_are_listed_outer_ones_first_with_their_paths() -> None:
    found = tool(
        "t",
        "",
        {
            "a": {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
            "c": {"type": "array", "items": {"type": "object", "properties": {"d": {}}}},
        },
        schema={"required": ["a"]},
    )
    assert [(each.path, each.depth, each.required, each.items) for each in found.parameters] == [
        ("a", 1, True, False),
        ("c", 1, False, False),
        ("a.b", 2, True, False),
        ("c.d", 2, False, True),
    ]


def test_references_are_followed_and_circles_end() -> None:
    schema = {
        "properties": {"tree": {"$ref": "#/$defs/tree", "description": "own"}},
        "$defs": {
            "tree": {"type": "object", "description": "theirs", "properties": {"left": {"$ref": "#/$defs/tree"}}}
        },
    }
    first, second = parameters_of(schema)
    assert (first.path, first.description, types_of(first.schema)) == ("tree", "own", {"object"})
    assert (second.path, second.description) == ("tree.left", "theirs")
    assert resolved({"$ref": "#"}, {"$ref": "#"}) == {"$ref": "#"}


def test_a_pointer_leads_to_what_it_names_or_nowhere() -> None:
    root: dict[str, Any] = {"$defs": {"a/b": {"x": 1}, "~": {"y": 1}}, "l": [{"z": 1}]}
    assert pointed("#/$defs/a~1b", root) == {"x": 1}
    assert pointed("#/$defs/~0", root) == {"y": 1}
    assert pointed("#/l/0", root) == {"z": 1}
    assert pointed("#", root) == root
    for reference in ("#/l/1", "#/l/-1", "#/l/x", "#/none", "other.json#/a", "#/$defs/a~1b/x"):
        assert pointed(reference, root) is None


def test_types_and_choices_of_alternatives_count() -> None:
    assert types_of({"anyOf": [{"type": "string"}, {"type": ["null", "integer"]}]}) == {"string", "null", "integer"}
    assert choices_of({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}) == ["a"]
    assert choices_of({"const": 3}) == [3]
    assert (types_of({}), choices_of({})) == (set(), [])


def test_a_wide_schema_that_refers_to_itself_is_read_in_bounded_time() -> None:
    names = [f"p{number}" for number in range(40)]
    inner = {"type": "object", "properties": {name: {"allOf": [{"$ref": "#/$defs/x"}] * 3} for name in names}}
    found = list(parameters_of({"properties": inner["properties"], "$defs": {"x": inner}}))
    assert len(found) <= 500


@given(JSON)
def test_whatever_a_server_lists_can_be_read(value: Any) -> None:
    raw = json.dumps({"name": "t", "description": value, "inputSchema": value, "annotations": value, "title": value})
    found = read_tool(Entry("s", "t", "s__t", raw.encode()))
    assert len(found.parameters) <= 500
    assert found.shown()["name"] == "s__t"


@given(st.binary(max_size=40))
def test_bytes_that_are_no_json_are_a_tool_without_anything(raw: bytes) -> None:
    assert read_tool(Entry("s", "t", "s__t", raw)).name == "t"
