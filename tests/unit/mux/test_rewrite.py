import json
from typing import Any

import pytest

from polyplex.errors import RemoteProtocolError
from polyplex.mux.entries import Naming
from polyplex.mux.rewrite import rewrite_result

PREFIX = Naming("docs", "docs", True)
BARE = Naming("docs", "docs", False)

LINK = b'{"type":"resource_link","uri":"file:///a","name":"file:///a","n":1.0, "v":{ "uri" : "file:///a"}}'
PUBLIC_LINK = b'{"type":"resource_link","uri":"docs+file:///a","name":"file:///a","n":1.0,"v":{ "uri" : "file:///a"}}'
EMBEDDED = b'{"type":"resource","resource":{"uri":"ui://v","text":"file:///a \\u00e9"},"annotations":{ }}'
PUBLIC_EMBEDDED = b'{"type":"resource","resource":{"uri":"ui://docs/v","text":"file:///a \\u00e9"},"annotations":{ }}'
TEXT = b'{ "type": "text", "text": "see \\"resource_link\\" file:///a" }'


def test_links_and_embedded_resources_of_a_tool_are_made_public() -> None:
    result = b'{"content":[%b,%b,%b],"structuredContent":{ "uri":"file:///a"},"isError":false}'
    assert rewrite_result("tools/call", result % (TEXT, LINK, EMBEDDED), PREFIX) == result % (
        TEXT,
        PUBLIC_LINK,
        PUBLIC_EMBEDDED,
    )


def test_links_and_embedded_resources_of_a_prompt_are_made_public() -> None:
    result = b'{"description":"d","messages":[{"role":"user","content":%b},{"role":"user","content":%b},{"role": "x"}]}'
    assert rewrite_result("prompts/get", result % (LINK, EMBEDDED), PREFIX) == result % (PUBLIC_LINK, PUBLIC_EMBEDDED)


def test_contents_that_were_read_are_made_public() -> None:
    result = (
        b'{"contents":[{"uri":"file:///a","text":"x"},{"uri":"file:///a#2","blob":"AA=="},{"text": "no uri"}],"v":1.0}'
    )
    changed = rewrite_result("resources/read", result, PREFIX)
    assert changed == result.replace(b"file:///a", b"docs+file:///a")


def test_links_to_apps_in_a_result_are_made_public() -> None:
    result = b'{"content":[%b],"_meta":{"ui":{"resourceUri":"ui://v"},"x":[ 1 ]}}' % TEXT
    changed = rewrite_result("tools/call", result, PREFIX)
    assert changed == result.replace(b"ui://v", b"ui://docs/v")


UNTOUCHED: list[tuple[str, bytes]] = [
    ("tools/call", b'{"content":[%b] }' % TEXT),
    ("tools/call", b'{ "content" : [ {"type":"text","text":"a"} ] }'),
    ("tools/call", b'{"content":[{"type": "resource"}, {"type": "resource", "resource": 5}]}'),
    ("tools/call", b'{"content":[{"type": "resource", "resource": {"text": "no uri"}}]}'),
    ("tools/call", b'{"content":[{"type":"resource_link", "uri": null}, "resource", null, 5, [1]]}'),
    ("tools/call", b'{"content":{"type":"resource_link","uri":"x"}}'),
    ("tools/call", b'{"content":null, "x":"\\"resource"}'),
    ("tools/call", b'{"structuredContent": {"type":"resource_link","uri":"x","resourceUri":"y"}}'),
    ("tools/call", b'{"content":[], "_meta": [{"resourceUri": "x"}]}'),
    ("tools/call", b'{"content":[], "_meta": {"ui": {"resourceUri": 5}}}'),
    ("prompts/get", b'{"messages":[{"role": "user", "content": "resource"}, {"role": "resource"}]}'),
    ("prompts/get", b'{"messages": {"resource": 1}}'),
    ("resources/read", b'{"contents": null}'),
    ("resources/read", b'{ "contents": [ ] }'),
    ("resources/read", b'{ "contents": [ 5, {"uri": 7} ] }'),
    ("completion/complete", b'{ "completion": {"values": ["resource_link"]}}'),
]


@pytest.mark.parametrize(("method", "result"), UNTOUCHED)
def test_a_result_without_uris_leaves_as_it_came(method: str, result: bytes) -> None:
    assert rewrite_result(method, result, PREFIX) == result


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_with_bare_names_nothing_is_read_at_all(method: str) -> None:
    broken = b'{"contents":[{"uri":"resource'
    assert rewrite_result(method, broken, BARE) is broken


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("resources/read", b"[]"),
        ("resources/read", b"null"),
        ("tools/call", b'["resource"]'),
        ("prompts/get", b'"resource"'),
        ("prompts/get", b'{"messages":["resource"]}'),
    ],
)
def test_a_result_of_an_impossible_shape_is_the_peers_fault(method: str, result: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        rewrite_result(method, result, PREFIX)


def test_a_large_text_beside_a_link_stays_byte_for_byte() -> None:
    text = b'{"type":"text","text":"%b"}' % (b"\\u00e9 \\/ " * 50_000)
    changed = rewrite_result("tools/call", b'{"content":[%b,%b]}' % (text, LINK), PREFIX)
    assert changed == b'{"content":[%b,%b]}' % (text, PUBLIC_LINK)


def test_rewriting_does_not_depend_on_the_order_of_members() -> None:
    block: dict[str, Any] = {"uri": "a:b", "name": "n", "type": "resource_link"}
    result = json.dumps({"isError": True, "content": [block]}).encode()
    assert json.loads(rewrite_result("tools/call", result, PREFIX)) == {
        "isError": True,
        "content": [block | {"uri": "docs+a:b"}],
    }
