import json
from typing import Any

import pytest

from polyplex.errors import RpcError
from polyplex.protocol.bridge.asks import answer_for, ask_for, check
from polyplex.protocol.jsonrpc import decode_fields
from polyplex.protocol.revisions import LATEST_LEGACY, LATEST_MODERN, R2024_11_05, R2025_03_26, R2025_06_18

SAMPLING, ELICITATION = "sampling/createMessage", "elicitation/create"
TEXT = {"type": "text", "text": "t"}
IMAGE = {"type": "image", "data": "aQ==", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "YQ==", "mimeType": "audio/wav"}
TOOL_USE = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
FORM: dict[str, Any] = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
URL: dict[str, Any] = {"message": "m", "mode": "url", "url": "https://example.com"}


def sampling(*contents: Any, **members: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": each} for each in contents], "maxTokens": 5} | members


def form(**properties: Any) -> dict[str, Any]:
    return {"message": "m", "requestedSchema": {"type": "object", "properties": properties}}


ALLOWED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (SAMPLING, sampling(TEXT), {"sampling": {}}, R2024_11_05),
    (SAMPLING, sampling({"type": "text", "text": '"tools"'}), {"sampling": {}}, LATEST_LEGACY),
    (SAMPLING, sampling(TEXT, tools=[]), {"sampling": {"tools": {}}}, LATEST_LEGACY),
    (SAMPLING, sampling([TOOL_USE]), {"sampling": {"tools": {}}}, LATEST_MODERN),
    (ELICITATION, FORM, {"elicitation": {}}, R2025_06_18),
    (ELICITATION, FORM, {"elicitation": {}}, LATEST_LEGACY),
    (ELICITATION, FORM | {"message": "url"}, {"elicitation": {"form": {}}}, LATEST_LEGACY),
    (ELICITATION, URL, {"elicitation": {"url": {}}}, LATEST_LEGACY),
    ("roots/list", {}, {"roots": {}}, R2024_11_05),
]
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    (SAMPLING, sampling(TEXT, tools=[]), {"sampling": {}}, LATEST_LEGACY),
    (SAMPLING, sampling(TEXT, toolChoice={}), {"sampling": {"context": {}}}, LATEST_LEGACY),
    (SAMPLING, sampling(TEXT, tools=[]), {"sampling": {"tools": {}}}, R2025_06_18),
    (SAMPLING, sampling(TOOL_USE), {"sampling": {}}, LATEST_MODERN),
    (SAMPLING, sampling([TEXT, TOOL_USE | {"type": "tool_result"}]), {"sampling": 5}, LATEST_LEGACY),
    (ELICITATION, FORM, {"elicitation": {}}, R2025_03_26),
    (ELICITATION, FORM, {"elicitation": {"url": {}}}, LATEST_LEGACY),
    (ELICITATION, URL, {"elicitation": {}}, LATEST_LEGACY),
    (ELICITATION, URL, {"elicitation": {"form": {}}}, LATEST_MODERN),
    (ELICITATION, URL, {"elicitation": {"url": {}}}, R2025_06_18),
]


@pytest.mark.parametrize(("method", "params", "capabilities", "revision"), ALLOWED)
def test_what_a_client_declared_is_asked(
    method: str, params: dict[str, Any], capabilities: dict[str, Any], revision: str
) -> None:
    check(method, json.dumps(params).encode(), decode_fields(json.dumps(capabilities).encode()), revision)
    check(method, None, decode_fields(json.dumps(capabilities | {"elicitation": {}}).encode()), revision)


@pytest.mark.parametrize(("method", "params", "capabilities", "revision"), REFUSED)
def test_what_it_did_not_declare_is_refused(
    method: str, params: dict[str, Any], capabilities: dict[str, Any], revision: str
) -> None:
    with pytest.raises(RpcError) as caught:
        check(method, json.dumps(params).encode(), decode_fields(json.dumps(capabilities).encode()), revision)
    assert caught.value.code == (-32601 if revision == R2025_03_26 else -32602)


def asked(method: str, params: dict[str, Any], revision: str) -> Any:
    raw = json.dumps(params).encode()
    found, _ = ask_for(method, raw, revision)
    if found is raw:
        return None
    return json.loads(found or b"null")


@pytest.mark.parametrize("revision", [R2025_06_18, LATEST_LEGACY, LATEST_MODERN])
def test_what_a_client_knows_is_asked_as_it_came(revision: str) -> None:
    assert asked(SAMPLING, sampling(TEXT, IMAGE, AUDIO), revision) is None
    assert asked(ELICITATION, form(a={"type": "string", "enum": ["x"]}, b={"type": "boolean"}), revision) is None
    assert ask_for("roots/list", None, revision) == (None, None)
    for odd in ({"messages": 5}, {"requestedSchema": [1]}, {"requestedSchema": {"properties": [1]}}):
        assert asked(SAMPLING, odd, revision) is asked(ELICITATION, odd, revision) is None


def test_blocks_of_one_message_become_messages() -> None:
    given = sampling([TEXT, IMAGE], TEXT, temperature=0.5)
    assert asked(SAMPLING, given, LATEST_LEGACY) is None
    assert asked(SAMPLING, given, R2025_06_18) == sampling(TEXT, IMAGE, TEXT, temperature=0.5)


def test_what_a_model_cannot_be_given_is_text() -> None:
    text = {"type": "text", "text": "data:audio/wav;base64,YQ=="}
    assert asked(SAMPLING, sampling([TEXT, AUDIO]), R2024_11_05) == sampling(TEXT, text)
    (message,) = asked(SAMPLING, sampling({"type": "vendor", "x": 1}), R2025_06_18)["messages"]
    assert json.loads(message["content"]["text"]) == {"type": "vendor", "x": 1}


def test_choices_have_the_names_of_the_revision() -> None:
    titled = {"type": "string", "title": "T", "default": "a", "oneOf": [{"const": "a", "title": "A"}, {"const": "b"}]}
    plain = {"type": "string", "title": "T", "default": "a", "enum": ["a", "b"], "enumNames": ["A", "b"]}
    assert asked(ELICITATION, form(x=titled), R2025_06_18) == form(x=plain)
    assert asked(ELICITATION, form(x=titled), LATEST_LEGACY) is None


@pytest.mark.parametrize(
    ("items", "choice"),
    [
        ({"type": "string", "enum": ["a", "b"]}, "a, b"),
        ({"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "b"}]}, "a (A), b"),
    ],
)
def test_several_choices_are_asked_for_in_one_text_and_come_back_as_a_list(items: Any, choice: str) -> None:
    given = form(x={"type": "array", "title": "T", "description": "D.", "items": items, "default": ["a", "b"]}, y={})
    raw, restore = ask_for(ELICITATION, json.dumps(given).encode(), R2025_06_18)
    properties = json.loads(raw or b"")["requestedSchema"]["properties"]
    hint = f"D. Any of: {choice}. Separate several with commas."
    assert properties == {"x": {"type": "string", "title": "T", "description": hint, "default": "a, b"}, "y": {}}
    assert restore is not None
    accepted = b'{"action":"accept","content":{"x":" a ,b,","y":"a, b"}}'
    assert json.loads(restore(accepted)) == {"action": "accept", "content": {"x": ["a", "b"], "y": "a, b"}}
    for other in (b'{"action":"decline"}', b'{"action":"accept","content":{"x":5}}'):
        assert json.loads(restore(other)) == json.loads(other)


def answered(content: Any, revision: str) -> Any:
    raw = json.dumps({"role": "assistant", "model": "m", "content": content}).encode()
    found = answer_for(SAMPLING, raw, revision)
    return None if found is raw else json.loads(found)["content"]


def test_an_answer_is_one_block_that_the_server_knows() -> None:
    assert answered([TEXT], LATEST_LEGACY) is None
    assert answered(AUDIO, R2025_03_26) is None
    assert answered([IMAGE], R2025_06_18) == IMAGE
    assert answered([TEXT, IMAGE], R2025_06_18) == {"type": "text", "text": "t\ndata:image/png;base64,aQ=="}
    assert answered(AUDIO, R2024_11_05) == {"type": "text", "text": "data:audio/wav;base64,YQ=="}
    assert answered([], R2025_06_18) is answered(5, R2025_06_18) is None
    assert answer_for(ELICITATION, b"{}", R2025_06_18) == b"{}"
