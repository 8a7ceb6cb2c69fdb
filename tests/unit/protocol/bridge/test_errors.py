import itertools
import json
from typing import Any

import pytest

from polyplex.protocol.bridge.errors import error_for, wants_url
from polyplex.protocol.revisions import LATEST_LEGACY, LATEST_MODERN, LEGACY_REVISIONS, R2025_06_18, Era

LEGACY, MODERN = Era.LEGACY, Era.MODERN
VISIT = {"mode": "url", "elicitationId": "e", "url": "https://example.com/é", "message": "Log in"}


def members(raw: bytes) -> dict[str, Any]:
    return json.loads(raw)


def error(code: int, **data: Any) -> bytes:
    return json.dumps({"code": code, "message": "m", **data}).encode()


@pytest.mark.parametrize(("upstream", "revision"), list(itertools.product(Era, (*LEGACY_REVISIONS, LATEST_MODERN))))
@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
def test_errors_keep_code_and_data(upstream: Era, revision: str, method: str) -> None:
    for code in (-32603, -32601, 0, 1234, -32000, -32700):
        sent = error(code, data={"k": [1, None]})
        assert error_for(method, sent, upstream, revision) is sent


@pytest.mark.parametrize(
    ("code", "upstream", "revision", "method", "expected"),
    [
        (-32002, LEGACY, LATEST_MODERN, "resources/read", -32602),
        (-32002, MODERN, LATEST_MODERN, "resources/read", -32602),
        (-32002, LEGACY, LATEST_MODERN, "prompts/get", -32602),
        (-32042, LEGACY, LATEST_MODERN, "tools/call", -32603),
        (-32042, MODERN, LATEST_MODERN, "tools/call", -32603),
        (-32099, MODERN, LATEST_MODERN, "tools/call", -32603),
        (-32050, LEGACY, LATEST_MODERN, "tools/call", -32603),
        (-32019, LEGACY, LATEST_MODERN, "tools/call", -32019),
        (-32100, LEGACY, LATEST_MODERN, "tools/call", -32100),
        (-32021, MODERN, LATEST_MODERN, "tools/call", -32021),
        (-32021, LEGACY, LATEST_MODERN, "tools/call", -32021),
        (-32020, MODERN, LATEST_MODERN, "tools/call", -32603),
        (-32022, MODERN, LATEST_MODERN, "tools/call", -32603),
        (-32021, MODERN, LATEST_LEGACY, "tools/call", -32603),
        (-32020, MODERN, LATEST_LEGACY, "tools/call", -32603),
        (-32602, MODERN, LATEST_LEGACY, "resources/read", -32002),
        (-32602, MODERN, LATEST_LEGACY, "tools/call", -32602),
        (-32602, LEGACY, LATEST_LEGACY, "resources/read", -32602),
        (-32602, LEGACY, LATEST_MODERN, "resources/read", -32602),
        (-32002, LEGACY, LATEST_LEGACY, "resources/read", -32002),
        (-32042, LEGACY, LATEST_LEGACY, "tools/call", -32042),
        (-32042, LEGACY, R2025_06_18, "prompts/get", -32603),
    ],
)
def test_codes_that_a_revision_does_not_have_never_reach_it(
    code: int, upstream: Era, revision: str, method: str, expected: int
) -> None:
    found = members(error_for(method, error(code, data=7), upstream, revision))
    assert found == {"code": expected, "message": "m", "data": 7}


def test_a_missing_resource_is_named() -> None:
    found = members(error_for("resources/read", error(-32002), LEGACY, LATEST_MODERN, "x:1"))
    assert found["data"] == {"uri": "x:1"}
    theirs = error(-32002, data={"uri": "1", "k": None})
    assert members(error_for("resources/read", theirs, LEGACY, LATEST_LEGACY, "x:1"))["data"] == {
        "uri": "x:1",
        "k": None,
    }
    for same in (error(-32002, data={"uri": "x:1"}), error(-32002, data=["uri"]), error(-1)):
        assert error_for("resources/read", same, LEGACY, LATEST_LEGACY, "x:1") is same
    assert "data" not in members(error_for("resources/read", error(-32042), LEGACY, LATEST_MODERN, "x:1"))


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
def test_a_url_to_visit_becomes_text_for_clients_without_that_error(revision: str) -> None:
    asked = error(-32042, data={"elicitations": [VISIT, {"url": "https://example.com/2"}]})
    expected = "m\nLog in: https://example.com/é\nhttps://example.com/2"
    if revision == LATEST_LEGACY:
        assert wants_url(asked, revision) is None
        assert error_for("prompts/get", asked, LEGACY, revision) is asked
    else:
        assert wants_url(asked, revision) == expected
        assert members(error_for("prompts/get", asked, LEGACY, revision))["message"] == expected
        assert wants_url(error(-32042, data="odd"), revision) == "m"
        assert wants_url(error(-1, data={"code": "-32042"}), revision) is None
