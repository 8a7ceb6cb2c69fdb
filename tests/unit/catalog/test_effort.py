"""How much work a check would be: what multiplies it is seen before it is done."""

from functools import reduce
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.effort import effort, is_plain

Json = dict[str, Any]
LIMIT = 20_000


def doubling(times: int, combined: str) -> Json:
    """A schema of a few hundred bytes whose every level is checked twice by the one above."""
    twice = {f"d{n}": {combined: [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(times)}
    return {"$ref": "#/$defs/d0", "$defs": twice | {f"d{times}": {"type": "object"}}}


ITSELF: Json = {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}
NESTED: Json = reduce(lambda inner, _: {"a": inner}, range(30), {})
BACKWARDS = r"^(a*)(a*)(a*)\1\2\3b$"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (doubling(60, "allOf"), {}),
        (doubling(60, "anyOf"), {}),
        (ITSELF, NESTED),
        ({"$ref": "#"}, {}),
        ({"allOf": [{"$ref": "#"}]}, {}),
        ({"items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}}, ["x"] * 100_000),
        ({"items": {"pattern": BACKWARDS}}, ["a" * 50] * 1_000),
        ({"items": {"enum": [str(n) for n in range(10_000)]}}, ["x"] * 1_000),
        ({"patternProperties": {BACKWARDS: {}}}, {f"{n:050}": 1 for n in range(1_000)}),
        # where a reference leads is not plain: it could lead to any of the above
        ({"$ref": "#anchor", "$defs": {"x": {"$anchor": "anchor"}}}, {}),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"$id": "http://x/", "$ref": "#/$defs/d"}, "d": {}}}, {}),
        ({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, {}),
        ({"$ref": "http://json-schema.org/draft-07/schema#"}, {}),
    ],
)
def test_what_takes_long_or_cannot_be_told_has_no_number(schema: Json, value: object) -> None:
    assert effort(schema, value, LIMIT) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": "x" * 1_000_000}),
        ({"properties": {"a": {"$ref": "#/$defs/A~1"}}, "$defs": {"A/": {"items": {"$ref": "#"}}}}, {"a": [{"a": []}]}),
        ({"$id": "http://x/", "$ref": "#/allOf/0", "allOf": [{"pattern": "^[a-z]+$"}]}, "abc"),
        ({"properties": {"mail": {"pattern": r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+-.]*)@x$"}}}, {"mail": "me@x"}),
    ],
)
def test_what_is_usual_has_one(schema: Json, value: object) -> None:
    steps = effort(schema, value, LIMIT)
    assert steps is not None
    assert steps < 100


def test_what_multiplies_nothing_is_plain() -> None:
    assert is_plain({"properties": {"a": {"type": "string"}}})
    assert not is_plain(doubling(2, "allOf"))
    assert not is_plain({"properties": {"a": {"pattern": "x"}}})


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["$ref", "allOf", "anyOf", "not", "items", "properties", "a", "pattern", "patternProperties", "enum",
             "prefixItems", "dependentSchemas", "propertyNames", "additionalProperties", "$id", "uniqueItems"]
        ),
        inner | st.sampled_from(["#", "#/a", "#/items/0", "#/properties/a", "#x"]),
        max_size=4,
    ),
    max_leaves=20,
)  # fmt: skip


@given(VALUES, VALUES)
def test_nothing_is_too_odd_to_be_walked(schema: object, value: object) -> None:
    steps = effort(schema, value, 500)
    assert steps is None or steps <= 500
