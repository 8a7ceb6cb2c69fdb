import json
from typing import Any

import pytest

from polyplex.protocol.bridge.results import finish, mend_tool_result, result_for, strip
from polyplex.protocol.jsonrpc import decode_fields
from polyplex.protocol.revisions import Era

LEGACY, MODERN = Era.LEGACY, Era.MODERN
SERVER_INFO = "io.modelcontextprotocol/serverInfo"


@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get", "tools/list"])
def test_between_equal_eras_the_bytes_that_came_leave(era: Era, method: str) -> None:
    result = b'{"content":[ {"x": 1.50} ], "resultType":"complete","y":null,"ttlMs":1}'
    assert result_for(method, result, era, era) is result


def members(raw: bytes) -> dict[str, Any]:
    return json.loads(raw)


def test_a_legacy_client_gets_nothing_of_the_modern_era() -> None:
    result = {
        "resultType": "complete",
        "ttlMs": 5,
        "cacheScope": "public",
        "contents": [{"ttlMs": 1, "resultType": "mine"}],
        "_meta": {SERVER_INFO: {"name": "x"}, "vendor": [1]},
    }
    stripped = members(result_for("resources/read", json.dumps(result).encode(), MODERN, LEGACY))
    assert stripped == {"contents": result["contents"], "_meta": {"vendor": [1]}}
    only_ours = json.dumps({"contents": [], "_meta": {SERVER_INFO: {}}}).encode()
    assert members(strip(decode_fields(only_ours))) == {"contents": []}


@pytest.mark.parametrize("method", ["tools/list", "resources/list", "resources/read", "server/discover"])
def test_a_modern_client_gets_what_its_results_must_have(method: str) -> None:
    finished = members(finish(method, decode_fields(b'{"x":1}'), 7, "public"))
    assert finished == {"resultType": "complete", "x": 1, "ttlMs": 7, "cacheScope": "public"}
    careful = members(result_for(method, b'{"x":1}', LEGACY, MODERN))
    assert (careful["ttlMs"], careful["cacheScope"]) == (0, "private")


def test_what_is_not_cacheable_gets_a_type_only_and_known_members_stay() -> None:
    assert members(result_for("prompts/get", b'{"messages":[]}', LEGACY, MODERN)) == {
        "resultType": "complete",
        "messages": [],
    }
    given = b'{"resultType":"task","ttlMs":1,"cacheScope":"public"}'
    assert members(finish("tools/list", decode_fields(given), 9, "private")) == members(given)


@pytest.mark.parametrize(
    ("result", "mended"),
    [
        (b'{"content":[]}', None),
        (b'{ "content" : [] , "isError" : true }', None),
        (b'{"structuredContent":{},"content":[]}', None),
        (b'{"resultType":"input_required","requestState":"x"}', None),
        (b"{}", {"content": []}),
        (b'{"structuredContent":{"a":1}}', {"structuredContent": {"a": 1}, "content": []}),
        (b'{"content":null}', {"content": []}),
        (b'{"content":"text"}', {"content": []}),
        (b'{"content":[],"isError":null}', {"content": []}),
        (b'{"isError":null,"structuredContent":null,"content":[1]}', {"content": [1]}),
        (b'{"resultType":"complete","x":1}', {"resultType": "complete", "x": 1, "content": []}),
    ],
)
def test_tool_results_are_mended_only_where_clients_would_break(result: bytes, mended: object) -> None:
    found = mend_tool_result(result)
    if mended is None:
        assert found is result
    else:
        assert members(found) == mended
