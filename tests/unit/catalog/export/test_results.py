import json
from typing import Any

import pytest

from polyplex.errors import ExportError
from tests.unit.catalog.export.test_calls import CALLS, made_for

PNG = {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}
TEXT = {"type": "text", "text": "Hello"}


def answer(kind: str, *content: Any, **members: Any) -> dict[str, Any]:
    return made_for(kind).result_for(CALLS[kind], {"content": list(content), **members})


def test_text_reaches_each_provider() -> None:
    assert answer("openai", TEXT, TEXT) == {"role": "tool", "tool_call_id": "c1", "content": "Hello\n\nHello"}
    assert answer("responses", TEXT) == {"type": "function_call_output", "call_id": "c1", "output": "Hello"}
    assert answer("anthropic", TEXT) == {"type": "tool_result", "tool_use_id": "c1", "content": [TEXT]}
    assert answer("gemini", TEXT) == {"functionResponse": {"name": "tool", "response": {"output": "Hello"}, "id": "c1"}}


def test_failures_are_told_apart() -> None:
    assert answer("openai", TEXT, isError=True)["content"] == "The tool failed: Hello"
    assert answer("responses", TEXT, isError=True)["output"] == "The tool failed: Hello"
    assert answer("anthropic", TEXT, isError=True)["is_error"] is True
    assert answer("gemini", TEXT, isError=True)["functionResponse"]["response"] == {"error": "Hello"}


def test_pictures_go_where_they_are_taken() -> None:
    assert answer("openai", TEXT, PNG)["content"] == "Hello\n\n[image/png, 9 bytes, which cannot be shown here]"
    assert answer("responses", TEXT, PNG)["output"] == [
        {"type": "input_text", "text": "Hello"},
        {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo=", "detail": "auto"},
    ]
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert answer("anthropic", PNG)["content"] == [{"type": "image", "source": source}]
    assert answer("gemini", TEXT, PNG)["functionResponse"]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    ]


def test_other_content_becomes_words() -> None:
    link = {
        "type": "resource_link",
        "uri": "polyplex://payload/x",
        "name": "rows.csv",
        "mimeType": "text/csv",
        "size": 9,
    }
    audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
    held = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}
    assert answer("openai", link)["content"] == "polyplex://payload/x (rows.csv, text/csv, 9 bytes)"
    assert answer("anthropic", audio)["content"][0]["text"] == "[audio/wav, 3 bytes, which cannot be shown here]"
    assert answer("openai", held)["content"] == "inside"
    assert answer("openai", {"type": "new", "x": 1})["content"] == '{"type": "new", "x": 1}'


def test_structured_content_is_given_once() -> None:
    structured = {"rows": [1, 2]}
    assert json.loads(answer("openai", structuredContent=structured)["content"]) == structured
    assert answer("openai", TEXT, structuredContent=structured)["content"] == "Hello"
    assert answer("gemini", TEXT, structuredContent=structured)["functionResponse"]["response"] == {
        "output": structured
    }


def test_gemini_never_gets_a_reference_in_a_response() -> None:
    structured = {"schema": {"$ref": "#/$defs/a"}}
    response = answer("gemini", TEXT, structuredContent=structured)["functionResponse"]["response"]
    assert response == {"output": "Hello"}


@pytest.mark.parametrize("result", [{}, {"content": None}, {"content": []}, {"content": ["x", 5]}, {"content": [{}]}])
def test_odd_results_still_answer_the_call(result: dict[str, Any]) -> None:
    for kind, call in CALLS.items():
        assert "c1" in json.dumps(made_for(kind).result_for(call, result))


def test_a_result_needs_a_call() -> None:
    with pytest.raises(ExportError):
        made_for("openai").result_for("c1", {"content": []})


def test_media_types_are_read_in_any_spelling() -> None:
    for spelling in ("image/PNG", "image/png; charset=binary", "image/x-png"):
        (block,) = answer("anthropic", PNG | {"mimeType": spelling})["content"]
        assert block["source"]["media_type"] == "image/png"
    (block,) = answer("anthropic", PNG | {"mimeType": "image/jpg"})["content"]
    assert block["source"]["media_type"] == "image/jpeg"


def test_structured_content_beside_a_picture_is_not_lost() -> None:
    for kind in ("openai", "responses", "anthropic", "gemini"):
        assert "Berlin" in str(answer(kind, PNG, structuredContent={"city": "Berlin"}))
    assert "Berlin" not in str(answer("anthropic", TEXT, PNG, structuredContent={"city": "Berlin"}))
