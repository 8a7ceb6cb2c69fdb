"""Other words for a tool."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.config.model import ToolOptions
from polyplex.mux.entries import Entry, Naming, read_entry
from polyplex.mux.overrides import described, unknown_parameters

Json = dict[str, Any]
NAMING = Naming("s", "s", False)


def read(tool: Json, options: ToolOptions) -> Json:
    entry = read_entry("tools", json.dumps(tool).encode(), NAMING, options={tool["name"]: options})
    assert isinstance(entry, Entry)
    return json.loads(entry.raw)


def test_a_tool_without_options_keeps_its_bytes() -> None:
    raw = b'{"name": "t",  "inputSchema":{"type":"object"}}'
    for options in ({}, {"other": ToolOptions(title="x")}, {"t": ToolOptions(pinned=True)}):
        entry = read_entry("tools", raw, NAMING, options=options)
        assert isinstance(entry, Entry)
        assert entry.raw == raw


def test_prompts_of_the_same_name_stay_as_they_are() -> None:
    entry = read_entry("prompts", b'{"name":"t"}', NAMING, options={"t": ToolOptions(name="u", title="x")})
    assert isinstance(entry, Entry)
    assert (entry.key, entry.raw) == ("t", b'{"name":"t"}')


def test_what_there_was_not_is_null_in_the_original() -> None:
    tool = {"name": "t", "inputSchema": {"type": "object"}, "_meta": {"x": 1}}
    seen = read(tool, ToolOptions(title="T", description=""))
    assert seen["_meta"] == {"x": 1, "polyplex/original": {"title": None, "description": None}}
    assert (seen["title"], seen["description"]) == ("T", "")


def test_a_name_of_the_configuration_is_made_legal_like_any_other() -> None:
    raw = b'{"name":"t","inputSchema":{"type":"object"}}'
    entry = read_entry("tools", raw, Naming("s", "s", True), options={"t": ToolOptions(name="ein Name")})
    assert isinstance(entry, Entry)
    assert (entry.local, entry.renamed) == ("t", "ein Name")
    assert entry.key.startswith("s__ein_Name__")
    assert json.loads(entry.raw)["_meta"]["polyplex/name"] == "t"


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("a", ["properties", "a"]),
        ("a.b", ["properties", "a", "properties", "b"]),
        ("c.d", ["properties", "c", "items", "properties", "d"]),
        ("x.y", ["properties", "x.y"]),
        ("x.y.z", ["properties", "x.y", "properties", "z"]),
    ],
)
def test_parameters_are_named_by_dotted_paths(path: str, where: list[str]) -> None:
    schema: Any = {
        "properties": {
            "a": {"properties": {"b": {"description": "was"}}},
            "c": {"type": "array", "items": {"properties": {"d": {}}}},
            "x.y": {"properties": {"z": {}}},
        }
    }
    done = described(json.dumps(schema).encode(), path.split("."), "new")
    assert done is not None
    assert done[1] == (b'"was"' if path == "a.b" else None)
    found = expected = json.loads(done[0])
    for key in where:
        found = found[key]
    assert found["description"] == "new"
    del found["description"]
    if path == "a.b":
        found["description"] = "was"
    assert expected == schema


def test_parameters_that_are_not_there_are_named() -> None:
    tool = json.dumps({"name": "t", "inputSchema": {"properties": {"a": {}, "b": True}}}).encode()
    options = ToolOptions(parameters=dict.fromkeys(["a", "a.b", "b", "", "c"], "x"))
    assert unknown_parameters(tool, options) == ["a.b", "b", "", "c"]


JUNK = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["properties", "items", "a", "b", "a.b", "description"]), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(JUNK, st.sampled_from(["a", "a.b", "b.a.b", "a.a", ""]))
def test_whatever_the_schema_only_one_description_changes(schema: Any, path: str) -> None:
    done = described(json.dumps(schema).encode(), path.split("."), "new text")
    if done is not None:
        after = json.loads(done[0])
        assert json.dumps(after).count('"new text"') == 1
        assert undone(after, done[1]) == schema


def undone(value: Any, was: bytes | None) -> Any:
    """The value with the description that was there before, or without one."""
    if isinstance(value, list):
        return [undone(each, was) for each in value]
    if not isinstance(value, dict):
        return value
    members = {key: undone(each, was) for key, each in value.items() if each != "new text" or was is not None}
    return {key: json.loads(was or b"null") if each == "new text" else each for key, each in members.items()}


def test_a_parameter_that_takes_payloads_says_so() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"description": "Bytes."}, "c": {}}}
    options = ToolOptions(
        resolve={"a": "content", "b": "url", "c.d": "content", "*": "content"}, parameters={"b": "Text."}
    )
    seen = read({"name": "t", "inputSchema": schema}, options)
    properties = seen["inputSchema"]["properties"]
    told = "The polyplex://payload/... URI of a stored result stands for its content."
    assert properties["a"] == {"type": "string", "description": told}
    assert properties["b"]["description"] == f"Text. {told}"
    assert properties["c"] == {}
    assert seen["_meta"]["polyplex/original"] == {"parameters": {"a": None, "b": "Bytes."}}
    raw = json.dumps({"name": "t", "inputSchema": schema}).encode()
    assert unknown_parameters(raw, options) == ["c.d"]
