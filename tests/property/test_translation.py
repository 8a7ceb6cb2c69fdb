"""What is translated between any two revisions is valid where it goes, and no text is lost on the way."""

import base64
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from polyplex.protocol.bridge import asks, downgrade, errors, results
from polyplex.protocol.bridge.schemas import tool_for_legacy
from polyplex.protocol.revisions import LEGACY_REVISIONS, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28, era_of
from tests.wire.schema import MODERN, REVISIONS, Json, Sender, problems

TEXTS = st.text(max_size=12)
BASE64 = st.binary(max_size=6).map(lambda data: base64.b64encode(data).decode())
JSON: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
REVISION = st.sampled_from(REVISIONS)
LEGACY = st.sampled_from(LEGACY_REVISIONS)


def record(kind: str, **members: SearchStrategy[Any]) -> SearchStrategy[Json]:
    return st.fixed_dictionaries({"type": st.just(kind), **members}, optional={"_meta": st.just({"vendor": 1})})


TEXT = record("text", text=TEXTS)
IMAGE = record("image", data=BASE64, mimeType=st.just("image/png"))
AUDIO = record("audio", data=BASE64, mimeType=st.just("audio/wav"))
LINK = record("resource_link", uri=st.just("file:///x"), name=TEXTS)
EMBEDDED = record("resource", resource=st.fixed_dictionaries({"uri": st.just("file:///y"), "text": TEXTS}))


def blocks(revision: str) -> SearchStrategy[Json]:
    """Content that servers of a revision may send."""
    kinds = [TEXT, IMAGE, EMBEDDED]
    kinds += [AUDIO] if revision >= R2025_03_26 else []
    return st.one_of([*kinds, LINK] if revision >= R2025_06_18 else kinds)


@st.composite
def tool_results(draw: st.DrawFn, revision: str) -> Json:
    """A tool result of a server of a revision."""
    result: Json = {"content": draw(st.lists(blocks(revision), max_size=4))}
    if draw(st.booleans()) and revision >= R2025_06_18:
        value = JSON if revision == MODERN else st.dictionaries(TEXTS, JSON, max_size=3)
        result["structuredContent"] = draw(value)
    if draw(st.booleans()):
        result["isError"] = draw(st.booleans())
    return result | ({"resultType": "complete"} if revision == MODERN else {})


@st.composite
def prompts(draw: st.DrawFn, revision: str) -> Json:
    """A prompt of a server of a revision."""
    content = draw(st.lists(blocks(revision), max_size=4))
    result: Json = {"messages": [{"role": "user", "content": block} for block in content]}
    return result | ({"resultType": "complete"} if revision == MODERN else {})


def translated(method: str, result: Json, server: str, client: str) -> Json:
    """As the pipeline does it."""
    raw = json.dumps(result).encode()
    sent = results.result_for(method, raw, era_of(server), era_of(client))
    if downgrade.applies(era_of(server), era_of(client), client):
        sent = downgrade.result_for(method, sent, client)
    return json.loads(sent)


def check(message: Json, revision: str, sender: Sender, answers: str | None = None) -> None:
    assert problems({"jsonrpc": "2.0", "id": 1, **message}, revision, sender, answers) == []


def said(block: Json) -> list[str]:
    """What of a block must be there afterwards, somewhere."""
    if block["type"] == "text":
        return [block["text"]]
    if block["type"] == "resource_link":
        return [block["uri"], block["name"]]
    return [block["resource"]["text"]] if block["type"] == "resource" else [block["data"]]


def strings(value: Any) -> list[str]:
    """All texts in a value."""
    if isinstance(value, dict):
        return [text for each in value.values() for text in strings(each)]
    if isinstance(value, list):
        return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


def keeps(before: list[Json], after: Any) -> None:
    kept = strings(after)
    for block in before:
        for part in said(block):
            assert any(part in text for text in kept), part


@given(st.data(), REVISION, REVISION)
def test_tool_results_are_valid_and_whole_for_every_client(data: st.DataObject, server: str, client: str) -> None:
    result = data.draw(tool_results(server))
    check({"result": result}, server, "server", "tools/call")
    sent = translated("tools/call", result, server, client)
    check({"result": sent}, client, "server", "tools/call")
    keeps(result["content"], sent["content"])
    value = result.get("structuredContent")
    if value is not None and client < R2025_06_18 and not any(block["type"] == "text" for block in result["content"]):
        assert json.loads(sent["content"][-1]["text"]) == value
    elif value is not None:
        assert sent["structuredContent"] in (value, {"result": value})
    if server == client and value is not None:
        assert sent == result


@given(st.data(), REVISION, REVISION)
def test_prompts_are_valid_and_whole_for_every_client(data: st.DataObject, server: str, client: str) -> None:
    result = data.draw(prompts(server))
    check({"result": result}, server, "server", "prompts/get")
    sent = translated("prompts/get", result, server, client)
    check({"result": sent}, client, "server", "prompts/get")
    keeps([each["content"] for each in result["messages"]], sent["messages"])


@given(st.integers(-33000, 100), TEXTS, JSON, REVISION, REVISION, st.sampled_from(["tools/call", "resources/read"]))
def test_errors_are_valid_for_every_client(
    code: int, message: str, given_data: Any, server: str, client: str, method: str
) -> None:
    error = json.dumps({"code": code, "message": message, "data": given_data}).encode()
    sent = json.loads(errors.error_for(method, error, era_of(server), client, "x:1"))
    check({"error": sent}, client, "server")
    assert message in sent["message"]
    if not isinstance(given_data, dict) or "uri" not in given_data:
        assert sent["data"] == given_data or given_data is None


CHOICES = st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True)
FIELDS = st.one_of(
    st.just({"type": "boolean"}),
    st.builds(lambda least: {"type": "integer", "minimum": least}, st.integers(0, 9)),
    st.builds(lambda words: {"type": "string", "enum": words}, CHOICES),
    st.builds(
        lambda words: {"type": "string", "oneOf": [{"const": word, "title": word * 2} for word in words]}, CHOICES
    ),
    st.builds(lambda words: {"type": "array", "items": {"type": "string", "enum": words}}, CHOICES),
    st.builds(
        lambda words: {"type": "array", "items": {"anyOf": [{"const": word, "title": word} for word in words]}}, CHOICES
    ),
)


@given(st.dictionaries(TEXTS, FIELDS, max_size=4), st.sampled_from([R2025_06_18, R2025_11_25]))
def test_forms_are_valid_for_every_client_that_has_them(properties: Json, client: str) -> None:
    params = {"message": "m", "requestedSchema": {"type": "object", "properties": properties}}
    check({"method": "elicitation/create", "params": params}, R2025_11_25, "server")
    raw, restore = asks.ask_for("elicitation/create", json.dumps(params).encode(), client)
    sent = json.loads(raw or b"")
    check({"method": "elicitation/create", "params": sent}, client, "server")
    assert sent["requestedSchema"]["properties"].keys() == properties.keys()
    several = [name for name, field in properties.items() if field["type"] == "array"]
    typed = {name: "a, b" if client < R2025_11_25 else ["a", "b"] for name in several}
    answer = json.dumps({"action": "accept", "content": typed}).encode()
    restored = json.loads(answer if restore is None else restore(answer))
    check({"result": restored}, R2025_11_25, "client", "elicitation/create")
    assert restored["content"] == {name: ["a", "b"] for name in several}


SPOKEN = st.one_of(TEXT, IMAGE, AUDIO)


@given(st.lists(st.one_of(SPOKEN, st.lists(SPOKEN, min_size=1, max_size=3)), max_size=3), LEGACY)
def test_sampling_is_valid_and_whole_for_every_client(contents: list[Any], client: str) -> None:
    messages = [{"role": "user", "content": content} for content in contents]
    params = {"messages": messages, "maxTokens": 1}
    raw, _ = asks.ask_for("sampling/createMessage", json.dumps(params).encode(), client)
    sent = json.loads(raw or b"")
    check({"method": "sampling/createMessage", "params": sent}, client, "server")
    for content in contents:
        keeps(content if isinstance(content, list) else [content], sent["messages"])


@given(st.one_of(SPOKEN, st.lists(SPOKEN, min_size=1, max_size=3)), LEGACY)
def test_what_a_model_said_is_valid_and_whole_for_every_server(content: Any, server: str) -> None:
    answer = {"role": "assistant", "model": "m", "content": content}
    sent = json.loads(asks.answer_for("sampling/createMessage", json.dumps(answer).encode(), server))
    check({"result": sent}, server, "client", "sampling/createMessage")
    keeps(content if isinstance(content, list) else [content], sent)


SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "array", "string", ["object", "null"], ["string", "null"]]),
        "properties": st.dictionaries(TEXTS, st.booleans() | st.just({"type": "string"}), max_size=3),
        "$defs": st.just({"a": {}}),
        "items": st.just({"$ref": "#/$defs/a"}),
    },
)


@given(SCHEMAS, st.dictionaries(TEXTS, st.booleans() | st.just({"type": "string"}), max_size=3), LEGACY)
def test_tools_of_modern_servers_are_valid_for_every_legacy_client(output: Json, inputs: Json, client: str) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": inputs}, "outputSchema": output}
    modern = {"tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
    check({"result": modern}, R2026_07_28, "server", "tools/list")
    sent = json.loads(tool_for_legacy(json.dumps(tool).encode()))
    check({"result": {"tools": [sent]}}, client, "server", "tools/list")
    assert sent["inputSchema"]["properties"].keys() == inputs.keys()
