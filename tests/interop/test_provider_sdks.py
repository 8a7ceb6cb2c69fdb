"""The providers' own SDKs read what is exported to them, and their objects are read as calls."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from polyplex.catalog.export import Export, export
from tests.providers import sdks

SLICE = Path(__file__).parents[1] / "data" / "exports" / "tools.jsonl"
PNG = "iVBORw0KGgo="
RESULT: dict[str, Any] = {
    "content": [{"type": "text", "text": "Done."}, {"type": "image", "data": PNG, "mimeType": "image/png"}]
}
TOOL = {"name": "t.1", "inputSchema": {"type": "object", "properties": {"a b": {"type": "integer"}}}}


def needs(provider: str) -> None:
    if not sdks.installed(provider):
        pytest.skip(f"the SDK of {provider} is not installed: uv sync --group providers")


@pytest.mark.parametrize(
    ("provider", "form", "strict"),
    [
        ("openai", "chat", False),
        ("openai", "chat", True),
        ("openai", "responses", True),
        ("anthropic", "messages", False),
        ("gemini", "json_schema", False),
        ("gemini", "openapi", False),
    ],
)
def test_the_sdk_s_types_allow_each_declaration(provider: str, form: str, strict: bool) -> None:
    needs(provider)
    lines = map(json.loads, SLICE.read_text(encoding="utf-8").splitlines())
    tools = [{"name": e["id"], "description": e["description"], "inputSchema": e["input_schema"]} for e in lines]
    made = export(provider, tools, form=form, strict=strict)
    check = sdks.tool_check(provider, form)
    assert len(made.declarations) > 60
    for declaration in made.declarations:
        check(declaration)


def test_the_check_refuses_what_gemini_does_not_know() -> None:
    needs("gemini")
    schema = {"type": "OBJECT", "properties": {"a": {"type": "STRING", "const": "x"}}}
    with pytest.raises(ValueError, match="const"):
        sdks.tool_check("gemini", "openapi")({"name": "t", "parameters": schema})


def name_and_property(made: Export) -> tuple[str, str]:
    declaration = made.declarations[0]
    inner = declaration.get("function", declaration)
    schema = next(inner[key] for key in ("input_schema", "parametersJsonSchema", "parameters") if key in inner)
    return inner["name"], next(iter(schema["properties"]))


def test_openai_objects_are_read_and_answered() -> None:
    needs("openai")
    from openai.types.chat import ChatCompletionMessageToolCall, ChatCompletionToolMessageParam
    from openai.types.chat.chat_completion_message_tool_call import Function
    from openai.types.responses import ResponseFunctionToolCall
    from openai.types.responses.response_input_param import FunctionCallOutput

    made = export("openai", [TOOL])
    name, given = name_and_property(made)
    function = Function(name=name, arguments=json.dumps({given: 1}))
    call = ChatCompletionMessageToolCall(id="c1", type="function", function=function)
    assert made.call_of(call) == ("t.1", {"a b": 1})
    TypeAdapter(ChatCompletionToolMessageParam).validate_python(made.result_for(call, RESULT))
    made = export("openai", [TOOL], form="responses")
    item = ResponseFunctionToolCall(type="function_call", call_id="c1", name=name, arguments=json.dumps({given: 1}))
    assert made.call_of(item) == ("t.1", {"a b": 1})
    TypeAdapter(FunctionCallOutput).validate_python(made.result_for(item, RESULT))


def test_anthropic_objects_are_read_and_answered() -> None:
    needs("anthropic")
    from anthropic.types import ToolResultBlockParam, ToolUseBlock

    made = export("anthropic", [TOOL])
    name, given = name_and_property(made)
    block = ToolUseBlock.model_validate({"type": "tool_use", "id": "c1", "name": name, "input": {given: 1}})
    assert made.call_of(block) == ("t.1", {"a b": 1})
    TypeAdapter(ToolResultBlockParam).validate_python(made.result_for(block, RESULT))


def test_gemini_objects_are_read_and_answered() -> None:
    needs("gemini")
    from google.genai import types

    made = export("gemini", [TOOL])
    name, given = name_and_property(made)
    assert types.Tool.model_validate(made.tools[0]).function_declarations
    call = types.FunctionCall(id="c1", name=name, args={given: 1})
    for item in (call, types.Part(function_call=call)):
        assert made.call_of(item) == ("t.1", {"a b": 1})
        part = types.Part.model_validate(made.result_for(item, RESULT))
        assert part.function_response is not None
        assert part.function_response.id == "c1"
        assert part.function_response.parts
