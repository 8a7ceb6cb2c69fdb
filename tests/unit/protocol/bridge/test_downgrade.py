import json
from typing import Any

import pytest

from polyplex.protocol.bridge.downgrade import applies, result_for
from polyplex.protocol.revisions import (
    LATEST_LEGACY,
    LATEST_MODERN,
    LEGACY_REVISIONS,
    R2024_11_05,
    R2025_03_26,
    R2025_06_18,
    Era,
)

TEXT = {"type": "text", "text": "t"}
IMAGE = {"type": "image", "data": "aQ==", "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": "YQ==", "mimeType": "audio/wav", "annotations": {"priority": 1}}
LINK = {"type": "resource_link", "uri": "file:///x", "name": "x", "mimeType": "text/plain", "description": "An x."}
LINK_TEXT = {"type": "text", "text": "[x (text/plain)] file:///x\nAn x."}
ODD = {"type": "vendor", "x": [1]}


def encode(value: Any) -> bytes:
    return json.dumps(value).encode()


def content(revision: str, *blocks: Any, **members: Any) -> Any:
    found = result_for("tools/call", encode({"content": blocks} | members), revision)
    return json.loads(found)["content"]


@pytest.mark.parametrize(
    ("server", "era", "revision", "expected"),
    [
        (Era.LEGACY, Era.LEGACY, LATEST_LEGACY, False),
        (Era.LEGACY, Era.LEGACY, R2025_06_18, False),
        (Era.LEGACY, Era.LEGACY, R2025_03_26, True),
        (Era.MODERN, Era.LEGACY, LATEST_LEGACY, True),
        (Era.MODERN, Era.MODERN, LATEST_MODERN, False),
        (Era.LEGACY, Era.MODERN, LATEST_MODERN, False),
    ],
)
def test_between_most_peers_there_is_nothing_to_do(server: Era, era: Era, revision: str, expected: bool) -> None:
    assert applies(server, era, revision) is expected


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read", "completion/complete"])
def test_what_every_revision_knows_leaves_as_it_came(method: str, revision: str) -> None:
    for given in (
        b'{"content": [ {"type":"text","text":"\\u00e9"}, {"type":"resource","resource":{"uri":"x:1","text":""}}]}',
        b'{"messages": [{"role":"user","content":{"type":"text","text":"resource_link"}}]}',
        b'{"content":[], "structuredContent": {"a":1.50}, "isError":true}'.replace(
            b"[]", b'[{"type":"text","text":"a"}]'
        ),
    ):
        assert result_for(method, given, revision) is given


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("given", [b'{"content":5}', b'{"messages":[5]}', b'{"content":[{"type":5}]}', b"{}"])
def test_what_is_no_content_is_left_alone(revision: str, given: bytes) -> None:
    for method in ("tools/call", "prompts/get"):
        assert result_for(method, given, revision) is given


def test_a_link_says_where_it_leads_where_there_are_no_links() -> None:
    for revision in (R2024_11_05, R2025_03_26):
        assert content(revision, TEXT, LINK, IMAGE) == [TEXT, LINK_TEXT, IMAGE]
        assert content(revision, LINK | {"title": "X", "_meta": {"k": 1}})[0] == {
            "type": "text",
            "text": "[X (text/plain)] file:///x\nAn x.",
            "_meta": {"k": 1},
        }
    for revision in (R2025_06_18, LATEST_LEGACY):
        assert content(revision, LINK) == [LINK]


def test_audio_is_an_embedded_resource_before_2025_03_26() -> None:
    (block,) = content(R2024_11_05, AUDIO)
    resource = {"uri": "urn:polyplex:audio:0", "blob": "YQ==", "mimeType": "audio/wav"}
    assert block == {"type": "resource", "resource": resource, "annotations": {"priority": 1}}
    assert content(R2025_03_26, AUDIO) == [AUDIO]


def test_blocks_that_no_revision_knows_are_shown_as_they_are() -> None:
    for odd in (ODD, {"type": "resource_link"}, {"type": "audio", "mimeType": "audio/wav"}, {"x": 1}):
        (block,) = content(R2024_11_05, odd)
        assert (block["type"], json.loads(block["text"])) == ("text", odd)


def test_messages_of_prompts_are_treated_alike() -> None:
    messages = [{"role": "user", "content": LINK, "x": 1}, {"role": "assistant", "content": TEXT}]
    given = encode({"messages": messages, "description": "d"})
    found = json.loads(result_for("prompts/get", given, R2025_03_26))
    assert found == {"messages": [messages[0] | {"content": LINK_TEXT}, messages[1]], "description": "d"}


@pytest.mark.parametrize("value", [[1, {"x": None}], "text", 7, True, None])
def test_structured_content_is_an_object_and_there_as_text(value: Any) -> None:
    for revision in LEGACY_REVISIONS:
        found = json.loads(result_for("tools/call", encode({"content": [TEXT], "structuredContent": value}), revision))
        assert found["structuredContent"] == {"result": value}
        assert found["content"][0] == TEXT
        assert json.loads(found["content"][1]["text"]) == value
        said = [{"type": "text", "text": json.dumps(value)}]
        assert content(revision, *said, structuredContent=value) == said, "it is there already"


def test_structured_content_is_text_for_clients_that_do_not_know_it() -> None:
    given: dict[str, Any] = {"content": [], "structuredContent": {"a": [1]}}
    (block,) = content(R2025_03_26, **{"structuredContent": given["structuredContent"]})
    assert json.loads(block["text"]) == {"a": [1]}
    assert content(R2025_06_18, structuredContent={"a": [1]}) == []
    link, block = content(R2025_03_26, LINK, structuredContent={"a": [1]})
    assert (link, json.loads(block["text"])) == (LINK_TEXT, {"a": [1]}), "what stands for a link is not the value"
