"""Checking arguments for `call_tool` ends, whatever they are, and refuses only what does not fit."""

import json
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.arguments import MAX_PROBLEMS, Checker, unknown_names
from polyplex.catalog.signatures import MAX_SIGNATURE, MAX_SUMMARY, compact
from polyplex.mux.entries import Entry

NAMES = st.sampled_from(["a", "b", "file_path", "filePath", "x y", "ü"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
KINDS = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": KINDS | st.lists(KINDS, min_size=1, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans(),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "description": st.text(max_size=20),
        },
    )


SCHEMAS = schemas(st.recursive(st.just({}), schemas, max_leaves=5))
ARGUMENTS = st.dictionaries(NAMES, VALUES, max_size=4)
CHECKER = Checker()


@given(SCHEMAS, ARGUMENTS)
def test_arguments_are_refused_exactly_where_another_checker_refuses_them(schema: Any, arguments: Any) -> None:
    raw, given = json.dumps(schema).encode(), json.dumps(arguments).encode()
    lines = CHECKER.problems(raw, given)
    assert bool(lines) is not jsonschema.Draft202012Validator(schema).is_valid(arguments)
    assert len(lines) <= MAX_PROBLEMS
    for line in [*lines, *unknown_names(raw, given)]:
        assert "\n" not in line
        assert len(line) < 1000


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "required", "items", "anyOf", "enum", "$ref", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(JUNK, JUNK, st.text(max_size=400))
def test_every_tool_has_one_bounded_line(schema: Any, title: Any, description: str) -> None:
    fields = {"name": "s__t", "inputSchema": schema, "title": title, "description": description}
    line = compact(Entry("s", "t", "s__t", json.dumps(fields).encode()))
    assert line.startswith("s__t(")
    assert "\n" not in line
    assert len(line) <= MAX_SIGNATURE + MAX_SUMMARY + 50


@given(JUNK, ARGUMENTS)
def test_junk_in_place_of_a_schema_hurts_nobody(schema: Any, arguments: Any) -> None:
    assert len(CHECKER.problems(json.dumps(schema).encode(), json.dumps(arguments).encode())) <= MAX_PROBLEMS
