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
LOOSE = (("openai", "chat"), ("anthropic", "messages"), ("gemini", "json_schema"))
FEW = settings(max_examples=1200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])

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
    accepted = [value for value in given_values if original.is_valid(value)]
    if not made.exported:
        assert not accepted, made.aside
        return
    check_mapping(made, accepted)
    assert not list(CHECKS[provider](made.declarations[0]))


def check_mapping(made: Export, accepted: list[dict[str, Any]], *, exact: bool = True) -> None:
    exported = judge(parameters(made))
    for value in accepted:
        _, given_to = made.arguments_for("tool", value)
        assert not [error.message for error in exported.iter_errors(given_to)], (value, given_to, parameters(made))
        name, back = made.original("tool", given_to)
        assert name == "tool"
        # Strict mode has null for what is absent; where the server takes null as well, it gets it.
        kept = (lambda found: found) if exact else without_nulls
        assert kept(back) == kept(value), (value, given_to, back, parameters(made))


def without_nulls(value: Any) -> Any:
    """The value without the null members of its objects."""
    if isinstance(value, dict):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


NAMED = ("a", "b", "c", "d")
scalars = st.fixed_dictionaries(
    {"type": st.sampled_from(TYPES[:5]) | st.just(["string", "null"]) | st.just(["integer", "boolean"])},
    optional={
        "enum": st.lists(st.sampled_from(SCALARS), min_size=1, max_size=4),
        "minimum": st.just(1),
        "pattern": st.just("^a"),
        "format": st.sampled_from(("date", "int32", "date-time", "strange")),
        "description": st.just("Says something."),
        "default": st.sampled_from(SCALARS),
    },
)


def _named_only(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects that name all they hold, unions and lists of them, and what only JSON text can carry."""
    closed = st.builds(
        lambda found, required: {
            "type": "object",
            "properties": found,
            "required": [name for name in required if name in found],
            "additionalProperties": False,
        },
        st.dictionaries(st.sampled_from(NAMED), below, max_size=3),
        st.lists(st.sampled_from(NAMED), max_size=3, unique=True),
    )
    return (
        closed
        | st.builds(lambda items: {"type": "array", "items": items}, below)
        | st.builds(
            lambda first: {"type": "array", "prefixItems": first, "items": False},
            st.lists(below, min_size=1, max_size=2),
        )
        | st.builds(lambda some: {"anyOf": some}, st.lists(below, min_size=1, max_size=3))
        | st.builds(lambda rest: {"type": "object", "additionalProperties": rest}, below)
        | st.builds(lambda one: {"allOf": [one], "description": "Wrapped."}, below)
    )


named = st.recursive(
    scalars
    | st.just({})
    | st.just({"type": "object"})
    | st.just({"type": "array"})
    | st.just({"$ref": "#/$defs/tree"}),
    _named_only,
    max_leaves=6,
)
_TREE = {"$ref": "#/$defs/tree"}
TREE = {
    "type": "object",
    "properties": {"a": {"type": "string"}, "b": _TREE, "c": {"type": "array", "items": _TREE}},
    "required": ["a"],
    "additionalProperties": False,
}
named_roots = st.builds(
    lambda found, required: {
        "type": "object",
        "properties": found,
        "required": [name for name in required if name in found],
        "additionalProperties": False,
        "$defs": {"tree": TREE},
    },
    st.dictionaries(st.sampled_from(NAMED), named, min_size=1, max_size=3),
    st.lists(st.sampled_from(NAMED), max_size=3, unique=True),
)


@st.composite
def fitting(draw: st.DrawFn, schema: dict[str, Any], depth: int = 0) -> Any:
    """A value that most likely fits one of the schemas above."""
    if "$ref" in schema:
        schema = TREE if depth < 3 else {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    if "anyOf" in schema:
        return draw(fitting(draw(st.sampled_from(schema["anyOf"])), depth + 1))
    if "allOf" in schema:
        return draw(fitting(schema["allOf"][0], depth + 1))
    if "enum" in schema:
        return draw(st.sampled_from(schema["enum"]))
    if schema.get("type") == "object" and "properties" in schema:
        optional = [name for name in schema["properties"] if name not in schema.get("required", ())]
        chosen = draw(st.lists(st.sampled_from(optional), unique=True)) if optional else []
        kept = [*schema.get("required", ()), *chosen]
        return {name: draw(fitting(schema["properties"][name], depth + 1)) for name in kept}
    if schema.get("type") == "array" and "items" in schema:
        first = [draw(fitting(below, depth + 1)) for below in schema.get("prefixItems", ())]
        items = schema["items"]
        return first + [draw(fitting(items, depth + 1)) for _ in range(draw(st.integers(0, 2))) if items]
    if isinstance(schema.get("additionalProperties"), dict):
        return {draw(names): draw(fitting(schema["additionalProperties"], depth + 1))}
    return draw(values)


@pytest.mark.parametrize(("provider", "form", "strict"), [("openai", "chat", True), ("gemini", "openapi", False)])
@given(data=st.data(), schema=named_roots)
@FEW
def test_closed_objects_and_json_text_lose_nothing(
    provider: str, form: str, strict: bool, data: st.DataObject, schema: dict[str, Any]
) -> None:
    made = export(provider, [tool(schema)], form=form, strict=strict)
    assert made.exported
    assert made.exported[0].notes == ()
    assert not list(CHECKS[provider](made.declarations[0]))
    original = judge(schema)
    value = data.draw(fitting(schema))
    if original.is_valid(value):
        check_mapping(made, [value], exact=not strict)


@given(schema=roots, given_values=st.lists(arguments, max_size=6))
@FEW
def test_the_same_tools_give_the_same_export(schema: dict[str, Any], given_values: list[dict[str, Any]]) -> None:
    for provider in CHECKS:
        first = export(provider, [tool(schema)])
        again = export(provider, [{"name": "other", "inputSchema": {"type": "object"}}, tool(schema)])
        assert first.declarations == again.declarations[1:]
        for value in given_values if first.exported else ():
            assert first.original("tool", value) == again.original("tool", value)


@given(schema=roots)
@FEW
def test_an_exported_schema_is_exported_as_it_is(schema: dict[str, Any]) -> None:
    """What is legal already stays so: a second time nothing is renamed, and the rules still hold."""
    for provider in CHECKS:
        made = export(provider, [tool(schema)])
        if made.exported:
            again = export(provider, [{"name": "tool", "inputSchema": parameters(made)}])
            assert not list(CHECKS[provider](again.declarations[0]))
            assert names_in(parameters(again)) == names_in(parameters(made))


def names_in(schema: Any) -> set[str]:
    from tests.providers.rules import schemas as walk

    return {name for _, below in walk(schema) if isinstance(below, dict) for name in below.get("properties", ())}


@given(given_names=st.lists(st.text(max_size=70) | st.sampled_from(("a b", "a_b", "1a", "x" * 80)), max_size=12))
@FEW
def test_names_are_legal_unique_and_independent_of_each_other(given_names: list[str]) -> None:
    tools = [{"name": name, "inputSchema": {"type": "object", "properties": {"a": {}}}} for name in given_names]
    for provider in CHECKS:
        made = export(provider, tools)
        assert {tool.public for tool in made.exported} == {name for name in given_names if name}
        assert len({tool.name for tool in made.exported}) == len(made.exported)
        for one in made.exported:
            assert not list(CHECKS[provider](one.declaration))
            alone = export(provider, [{"name": one.public, "inputSchema": {"type": "object", "properties": {"a": {}}}}])
            assert alone.exported[0].name == one.name
            assert made.original(one.name, {}) == (one.public, {})


@given(
    junk=values
    | st.dictionaries(st.sampled_from(("type", "properties", "$ref", "anyOf", "items", "enum", "required")), values)
)
@FEW
def test_what_is_no_schema_harms_no_other_tool(junk: Any) -> None:
    good = {"name": "good", "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
    bad = {"name": "bad", "inputSchema": {"type": "object", "properties": {"a": junk}}}
    for provider in CHECKS:
        made = export(provider, [{"name": "odd", "inputSchema": junk}, bad, good, junk])
        assert "good" in {tool.public for tool in made.exported}
        assert len(made.exported) + len(made.aside) == 4
        for one in made.exported:
            assert not list(CHECKS[provider](one.declaration))
        assert all(entry.reason for entry in made.aside)


@pytest.mark.parametrize(("provider", "form", "strict"), [("openai", "responses", True), ("gemini", "openapi", False)])
@given(schema=roots, given_values=st.lists(arguments, max_size=4))
@FEW
def test_any_schema_keeps_the_rules_of_narrow_forms(
    provider: str, form: str, strict: bool, schema: dict[str, Any], given_values: list[dict[str, Any]]
) -> None:
    made = export(provider, [tool(schema)], form=form, strict=strict)
    for declaration in made.declarations:
        assert not list(CHECKS[provider](declaration))
        for value in given_values:
            _, given_to = made.arguments_for("tool", value)
            assert without_nulls(made.original("tool", given_to)[1]) == without_nulls(value)
