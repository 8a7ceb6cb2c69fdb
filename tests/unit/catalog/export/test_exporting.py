import json
from pathlib import Path
from typing import Any

import pytest

from polyplex.catalog.export import export
from polyplex.errors import ExportError
from tests.providers.rules import CHECKS
from tests.unit.catalog.export.schemas import exported, reason, tool, with_property, written

SLICE = Path(__file__).parents[3] / "data" / "exports" / "tools.jsonl"
FORMS = [
    ("openai", "chat", False),
    ("openai", "chat", True),
    ("openai", "responses", False),
    ("openai", "responses", True),
    ("anthropic", "messages", False),
    ("gemini", "json_schema", False),
    ("gemini", "openapi", False),
]


def real_tools() -> list[dict[str, Any]]:
    lines = map(json.loads, SLICE.read_text(encoding="utf-8").splitlines())
    return [tool(line["input_schema"], line["id"], description=line["description"]) for line in lines]


@pytest.mark.parametrize(("provider", "form", "strict"), FORMS)
def test_real_tools_keep_the_rules_of_each_provider(provider: str, form: str, strict: bool) -> None:
    tools = real_tools()
    made = export(provider, tools, form=form, strict=strict)
    assert made.aside == ()
    assert len(made.exported) == len(tools) > 60
    assert [problem for declaration in made.declarations for problem in CHECKS[provider](declaration)] == []


def test_one_bad_schema_is_set_aside_and_named() -> None:
    good = with_property({"type": "string"})
    bad = with_property({"$ref": "#/$defs/missing"})
    for provider in CHECKS:
        made = export(provider, [tool(good, "one"), tool(bad, "two"), tool(good, "three")])
        assert [one.public for one in made.exported] == ["one", "three"]
        assert made.aside[0].name == "two"
        assert made.aside[0].reason == "#/properties/p refers to #/$defs/missing, which the schema does not have"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (None, "no input schema"),
        ([], "not an object"),
        ({"type": "string"}, "accepts no object"),
        ({"type": "object", "properties": []}, "#/properties is []"),
        ({"allOf": [{"type": "array"}, {"type": "object"}]}, "accepts no object"),
        (with_property({"type": "frob"}), "#/properties/p has the type 'frob'"),
        (with_property({"type": 7}), "#/properties/p has the type '7'"),
        (with_property("string"), '#/properties/p is "string", not a schema'),
        (with_property({"anyOf": {"type": "string"}}), "#/properties/p/anyOf"),
        (with_property({"$ref": "#nowhere"}), "an anchor"),
        (with_property({"items": {"$ref": "#/properties/p/oneOf/3"}}), "which the schema does not have"),
    ],
)
def test_a_schema_that_says_nothing_sensible_is_set_aside(schema: Any, words: str) -> None:
    for provider in ("openai", "anthropic"):
        assert words in reason(schema, provider)


@pytest.mark.parametrize(
    "junk", [None, 7, "tool", [], {}, {"name": 3}, {"name": ""}, {"name": "x"}, {"inputSchema": {}}]
)
def test_what_is_no_tool_is_set_aside(junk: Any) -> None:
    made = export("openai", [junk, tool({"type": "object"}, "good")])
    assert [one.public for one in made.exported] == ["good"]
    assert len(made.aside) == 1


def test_the_second_tool_of_a_name_is_set_aside() -> None:
    made = export("openai", [tool({"type": "object"}), tool({"type": "object"})])
    assert len(made.exported) == 1
    assert made.aside[0] == ("tool", "there is another tool of this name")


@pytest.mark.parametrize(
    ("provider", "form", "strict", "words"),
    [
        ("openal", "", False, "use 'openai', 'anthropic', 'gemini'"),
        ("anthropic", "", True, "use form='messages'"),
        ("openai", "completions", False, "use form='chat' or form='chat', strict=True or form='responses'"),
    ],
)
def test_an_unknown_provider_or_form_says_what_there_is(provider: str, form: str, strict: bool, words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("'", ".")):
        export(provider, [], form=form, strict=strict)


def test_each_provider_gets_its_own_shape() -> None:
    one = [tool(with_property({"type": "string"}), description="Does it.")]
    schema = {"type": "object", "properties": {"p": {"type": "string"}}}
    described = {"name": "tool", "description": "Does it."}
    assert export("openai", one).tools == [{"type": "function", "function": {**described, "parameters": schema}}]
    assert export("openai", one, form="responses").tools == [
        {"type": "function", **described, "parameters": schema, "strict": False}
    ]
    assert export("anthropic", one).tools == [{**described, "input_schema": schema}]
    assert export("gemini", one).tools == [{"functionDeclarations": [{**described, "parametersJsonSchema": schema}]}]
    assert export("gemini", one, form="openapi").tools == [
        {
            "functionDeclarations": [
                {**described, "parameters": {"type": "OBJECT", "properties": {"p": {"type": "STRING"}}}}
            ]
        }
    ]
    assert export("gemini", []).tools == []


def test_a_tool_without_arguments_has_an_empty_object_or_none() -> None:
    for schema in ({"type": "object"}, {"type": "object", "properties": {}, "additionalProperties": False}, {}):
        assert exported(schema, "openai")[1]["properties"] == {}
        assert exported(schema, "anthropic")[1]["type"] == "object"
        assert "parameters" not in export("gemini", [tool(schema)], form="openapi").declarations[0]


def test_long_descriptions_are_cut_for_openai_only() -> None:
    long = "word " * 2000
    cut = export("openai", [tool({}, description=long)]).declarations[0]["function"]["description"]
    assert 1000 < len(cut) <= 1024
    assert cut.endswith("word…")
    assert export("anthropic", [tool({}, description=long)]).declarations[0]["description"] == long.strip()


def test_a_title_stands_in_for_a_missing_description() -> None:
    assert export("anthropic", [tool({}, title="Read it")]).declarations[0]["description"] == "Read it"
    assert "description" not in export("anthropic", [tool({}, description=7)]).declarations[0]


def test_more_tools_than_a_request_takes_are_told() -> None:
    many = [tool({}, f"tool_{number}") for number in range(129)]
    assert export("openai", many[:128]).too_many == ""
    assert "openai takes 128 tools in one request, these are 129" in export("openai", many).too_many


def test_names_lead_both_ways() -> None:
    made = export("gemini", [tool({}, "1st.tool"), tool({}, "second")])
    assert made.name_of("second") == "second"
    name = made.name_of("1st.tool")
    assert name.startswith("x_1st_tool_")
    assert made.original(name, {"a": 1}) == ("1st.tool", {"a": 1})
    with pytest.raises(ExportError, match="no tool 'third' was exported to gemini"):
        made.original("third", {})
    with pytest.raises(ExportError, match="there are none"):
        export("gemini", []).name_of("x")


def test_the_input_is_not_changed() -> None:
    tools = real_tools()
    before = json.dumps(tools)
    for provider, form, strict in FORMS:
        made = export(provider, tools, form=form, strict=strict)
        for one in made.exported:
            json.dumps(one.declaration)
    assert json.dumps(tools) == before


def test_strict_mode_is_left_where_a_tool_is_too_open_or_too_large() -> None:
    open_tool = tool({"type": "object", "additionalProperties": {"type": "string"}}, "open")
    huge = tool(with_property({"enum": [f"value {number}" for number in range(1001)]}), "huge")
    values = tool(with_property({"enum": ["x" * 70 + str(number) for number in range(251)]}), "values")
    small = tool(with_property({"type": "string"}), "small")
    made = export("openai", [open_tool, huge, values, small], strict=True)
    assert made.aside == ()
    notes = {one.public: one.notes for one in made.exported}
    assert notes["open"] == ("not strict: its schema leaves open which arguments there are",)
    assert notes["values"][0].startswith("not strict: an enum of it")
    assert notes["small"] == ()
    strict = {one.public: one.declaration["function"].get("strict") for one in made.exported}
    assert strict == {"open": None, "huge": True, "values": None, "small": True}
    # More than a thousand values have become words before.
    assert "one of 1001 values" in json.dumps(made.exported[1].declaration).lower()


def test_the_words_of_a_root_union_are_in_the_description_of_the_tool() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
    }
    made = export("openai", [tool(schema, description="Finds it.")])
    function = made.declarations[0]["function"]
    assert function["description"] == "Finds it. Give one of these sets: a, b?; b, a?"
    assert function["parameters"]["properties"] == schema["properties"]
    assert "required" not in function["parameters"]


def test_a_schema_of_thousands_of_properties_is_exported_whole() -> None:
    many = {f"p{number}": {"type": "string"} for number in range(6000)}
    for provider in CHECKS:
        made = export(provider, [tool({"type": "object", "properties": many})])
        assert len(made.exported) == 1
        assert not list(CHECKS[provider](made.declarations[0]))


def test_deep_nesting_ends_in_anything() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = with_property(schema)
    for provider, form, strict in FORMS:
        made = export(provider, [tool(schema)], form=form, strict=strict)
        assert made.aside == ()
        assert not list(CHECKS[provider](made.declarations[0]))


def test_references_that_multiply_stay_bounded() -> None:
    """Each definition holds the next one ten times: written out there would be 10^20 places."""
    definitions: dict[str, Any] = {
        f"d{level}": {"type": "object", "properties": {f"p{at}": {"$ref": f"#/$defs/d{level + 1}"} for at in range(10)}}
        for level in range(20)
    }
    definitions["d20"] = {"type": "string"}
    schema = with_property({"$ref": "#/$defs/d0"}, **{"$defs": definitions})
    for provider, form, strict in FORMS:
        made = export(provider, [tool(schema)], form=form, strict=strict)
        assert made.aside == ()
        assert len(json.dumps(made.declarations)) < 2_000_000
    assert written({"type": "string"}) == {"type": "string"}
