"""Exported schemas accept what the servers' accept, and arguments come back as they were.

Schemas and values are drawn from few names, strings and numbers, so that many values fit; the judge of both schemas is
the jsonschema-rs validator.
"""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyplex.catalog.export import Export, export
from tests.providers.rules import CHECKS

NAMES = ("a", "b", "c d", "$top", "élan", "x.y")
SCALARS: tuple[Any, ...] = (None, True, False, 0, 1, 2, 1.5, "", "a", "ab", "ba")
LOOSE = (("openai", "chat"), ("openai", "responses"), ("anthropic", "messages"), ("gemini", "json_schema"))
FEW = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

names = st.sampled_from(NAMES)
values = st.recursive(
    st.sampled_from(SCALARS),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(names, values, max_size=4)
TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
assertions = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
        "enum": st.lists(st.sampled_from(SCALARS), min_size=1, max_size=4),
        "minimum": st.sampled_from((0, 1)),
        "exclusiveMaximum": st.sampled_from((1, 2)),
        "multipleOf": st.sampled_from((1, 0.5)),
        "minLength": st.sampled_from((0, 1)),
        "pattern": st.sampled_from(("^a", "b$", "(")[:2]),
        "maxItems": st.sampled_from((0, 1, 2)),
        "uniqueItems": st.booleans(),
        "minProperties": st.sampled_from((0, 1)),
        "description": st.sampled_from(("", "Says something.")),
        "default": st.sampled_from(SCALARS),
        "title": st.just("T"),
    },
)
constants = st.sampled_from(SCALARS).map(lambda value: {"const": value})
references = st.sampled_from(("#/$defs/one", "#/$defs/two", "#", "#/properties/a", "#mark")).map(
    lambda to: {"$ref": to}
)


def _grown(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(below, min_size=1, max_size=3)
    members = {
        "properties": st.dictionaries(names, below, max_size=3),
        "required": st.lists(names, max_size=2, unique=True),
        "additionalProperties": st.booleans() | below,
        "patternProperties": st.dictionaries(st.sampled_from(("^a", "[bc]")), below, max_size=1),
        "items": below,
        "prefixItems": some,
        "anyOf": some,
        "oneOf": some,
        "allOf": some,
        "not": below,
        "if": below,
        "then": below,
        "else": below,
        "contains": below,
        "propertyNames": st.just({"maxLength": 1}),
        "dependentRequired": st.just({"a": ["b"]}),
        "dependentSchemas": st.fixed_dictionaries({"a": below}),
        "unevaluatedProperties": st.booleans(),
        "unevaluatedItems": st.booleans(),
        "$ref": st.sampled_from(("#/$defs/one", "#/$defs/two", "#")),
        "type": st.sampled_from(("object", "array")),
    }
    chosen = st.lists(st.sampled_from(sorted(members)), min_size=1, max_size=4, unique=True)
    grown = chosen.flatmap(lambda keys: st.fixed_dictionaries({key: members[key] for key in keys}))
    return st.builds(lambda one, two: {**one, **two}, assertions, grown) | grown


schemas = st.recursive(assertions | constants | references | st.booleans(), _grown, max_leaves=8)
roots = st.builds(
    lambda root, properties, one, two: {
        **(root if isinstance(root, dict) else {}),
        **({"properties": properties} if properties else {}),
        "type": "object",
        "$defs": {"one": one, "two": two, "marked": {"$anchor": "mark", "type": ["string", "array"]}},
    },
    schemas,
    st.dictionaries(names, schemas, max_size=3).map(lambda found: {**found, "a": found.get("a", {})}),
    schemas,
    schemas,
)


def judge(schema: Any) -> jsonschema_rs.Validator:
    """A validator; draft 2020-12, formats not asserted."""
    return jsonschema_rs.Draft202012Validator(schema)


def tool(schema: Any) -> dict[str, Any]:
    return {"name": "tool", "description": "Does it.", "inputSchema": schema}


def parameters(made: Export) -> dict[str, Any]:
    """The schema of the only tool, as JSON Schema."""
    declaration = made.declarations[0]
    declaration = declaration.get("function", declaration)
    for key in ("input_schema", "parametersJsonSchema"):
        if key in declaration:
            return declaration[key]
    found = declaration.get("parameters", {"type": "OBJECT"})
    return from_openapi(found) if made.form == "openapi" else found


def from_openapi(schema: dict[str, Any]) -> dict[str, Any]:
    """A `Schema` of Gemini as the JSON Schema that means the same."""
    plain = {key: value for key, value in schema.items() if key != "nullable"}
    if "type" in plain:
        plain["type"] = plain["type"].lower()
    for key in ("items",):
        if key in plain:
            plain[key] = from_openapi(plain[key])
    if "properties" in plain:
        plain["properties"] = {name: from_openapi(below) for name, below in plain["properties"].items()}
    if "anyOf" in plain:
        plain["anyOf"] = [from_openapi(below) for below in plain["anyOf"]]
    return {"anyOf": [plain, {"type": "null"}]} if schema.get("nullable") else plain


@pytest.mark.parametrize(("provider", "form"), LOOSE)
@given(schema=roots, given_values=st.lists(arguments, max_size=12))
@FEW
def test_what_the_server_accepts_the_export_accepts(
    provider: str, form: str, schema: dict[str, Any], given_values: list[dict[str, Any]]
) -> None:
    made = export(provider, [tool(schema)], form=form)
    try:
        original = judge(schema)
    except jsonschema_rs.ValidationError:
        return
    accepted = [value for value in given_values if accepts(original, value)]
    if not made.exported:
        assert not accepted, made.aside
        return
    check_mapping(made, accepted)
    assert not list(CHECKS[provider](made.declarations[0]))


def accepts(original: jsonschema_rs.Validator, value: Any) -> bool:
    return original.is_valid(value)


def check_mapping(made: Export, accepted: list[dict[str, Any]]) -> None:
    exported = judge(parameters(made))
    for value in accepted:
        _, given_to = made.arguments_for("tool", value)
        assert not [error.message for error in exported.iter_errors(given_to)], (value, given_to, parameters(made))
        assert made.original("tool", given_to) == ("tool", value), (given_to, parameters(made))
