from typing import Any

import pytest

from polyplex.catalog.export import Export, export
from polyplex.errors import ExportError
from tests.unit.catalog.export.schemas import tool, with_property

CALLS: dict[str, dict[str, Any]] = {
    "openai": {"id": "c1", "type": "function", "function": {"name": "tool", "arguments": '{"p": 1}'}},
    "responses": {"type": "function_call", "id": "fc", "call_id": "c1", "name": "tool", "arguments": '{"p": 1}'},
    "anthropic": {"type": "tool_use", "id": "c1", "name": "tool", "input": {"p": 1}},
    "gemini": {"id": "c1", "name": "tool", "args": {"p": 1}},
    "gemini part": {"functionCall": {"id": "c1", "name": "tool", "args": {"p": 1}}},
}


def made_for(kind: str) -> Export:
    provider = "openai" if kind == "responses" else kind.split()[0]
    return export(provider, [tool(with_property({"type": "integer"}))], form="responses" if kind == "responses" else "")


@pytest.mark.parametrize("kind", CALLS)
def test_each_provider_s_call_is_read(kind: str) -> None:
    assert made_for(kind).call_of(CALLS[kind]) == ("tool", {"p": 1})


@pytest.mark.parametrize("arguments", ["", "{}", None, {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "tool", "arguments": arguments}}
    assert made_for("openai").call_of(call) == ("tool", {})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (7, "not int"),
        (None, "not NoneType"),
        ({}, "an OpenAI call needs a name; got the members .none."),
        ({"function": {"arguments": "{}"}}, "got the members function"),
        ({"function": {"name": "tool", "arguments": "{"}}, "the arguments of the call of tool are no JSON"),
        ({"function": {"name": "tool", "arguments": "[" * 100_000}}, "are no JSON"),
        ({"function": {"name": "tool", "arguments": '{"p": NaN}'}}, "NaN is no JSON value"),
        ({"function": {"name": "tool", "arguments": "[1]"}}, "are list, not an object"),
        ({"function": {"name": "tool", "arguments": 5}}, "are int, not an object"),
        ({"function": {"name": "other", "arguments": "{}"}}, "no tool 'other' was exported to openai: there are tool"),
    ],
)
def test_a_call_that_cannot_be_read_says_why(call: Any, words: str) -> None:
    with pytest.raises(ExportError, match=words):
        made_for("openai").call_of(call)


def test_arguments_may_be_json_text() -> None:
    assert made_for("anthropic").original("tool", '{"p": 1}') == ("tool", {"p": 1})
    with pytest.raises(ExportError, match="no JSON"):
        made_for("anthropic").original("tool", "{")


def test_a_call_with_arguments_that_cannot_be_read_is_answered() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "tool", "arguments": "{"}}
    failure = {"content": [{"type": "text", "text": "No JSON."}], "isError": True}
    answer = {"role": "tool", "tool_call_id": "c1", "content": "The tool failed: No JSON."}
    assert made_for("openai").result_for(call, failure) == answer
