import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import Raw

from polyplex.downstream.session import Call, Session
from polyplex.errors import (
    RemoteProtocolError,
    RpcError,
    UpstreamBusy,
    UpstreamError,
    UpstreamLost,
    UpstreamRefused,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from polyplex.gateway import rounds
from polyplex.gateway.pipeline import answer_failure, finish, localise, resolve
from polyplex.mux.entries import KEY_OF, Entry, Naming, read_entry
from polyplex.mux.router import Routes
from polyplex.protocol.jsonrpc import Message, decode_fields
from polyplex.protocol.revisions import Era
from polyplex.upstreams.upstream import Upstream


def call_of(method: str, era: Era = Era.LEGACY, headers: dict[str, str] | None = None) -> Call:
    session = Session(era, "x", http=False)
    return Call(session, Message(id=Raw(b"1"), method=method), lambda frame: None, headers)


FAILURES: list[tuple[type[UpstreamError], tuple[str, ...]]] = [
    (UpstreamUnavailable, ("not available", "Nothing was sent", "keeps trying")),
    (UpstreamTimeout, ("did not answer in time", "unknown", "timeoutSeconds")),
    (UpstreamLost, ("failed during the request", "unknown", "reconnects")),
    (UpstreamRefused, ("refused", "will not help")),
    (UpstreamBusy, ("does not take the request now", "Nothing ran", "try again")),
]


@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize(("kind", "said"), FAILURES)
def test_a_failing_server_is_a_tool_result_that_says_what_happened_and_what_is_next(
    era: Era, kind: type[UpstreamError], said: tuple[str, ...]
) -> None:
    reply = answer_failure(call_of("tools/call", era), kind("docs", "the reason"))
    result = json.loads(reply.result or b"")
    assert result["isError"] is True
    assert result.get("resultType") == ("complete" if era is Era.MODERN else None)
    (block,) = result["content"]
    assert block["type"] == "text"
    for part in ("'docs'", "the reason", *said):
        assert part in block["text"]


@pytest.mark.parametrize("method", ["resources/read", "prompts/get", "completion/complete"])
def test_elsewhere_it_is_an_error_with_the_server_in_its_data(method: str) -> None:
    reply = answer_failure(call_of(method), UpstreamLost("docs", "gone"))
    error = json.loads(reply.error or b"")
    assert (error["code"], error["data"]) == (-32603, {"server": "docs"})
    assert "'docs'" in error["message"]


@pytest.mark.parametrize("method", ["tools/call", "resources/read"])
@pytest.mark.parametrize(
    "result", [b'{"contents":%b}' % (b"[" * 100_000 + b"]" * 100_000), b'{"contents":[1,}', b"[]"], ids=len
)
def test_a_result_that_cannot_be_read_is_a_failure_of_its_server(method: str, result: bytes) -> None:
    with pytest.raises(UpstreamLost, match=f"docs: its result for {method} is not usable: "):
        finish(call_of(method), result, Era.MODERN, Naming("docs", "docs", True))


def test_questions_nested_too_deeply_are_a_failure_that_names_the_server() -> None:
    upstream = cast("Upstream", SimpleNamespace(config=SimpleNamespace(name="docs")))
    with pytest.raises(RpcError, match="'docs' asks for input in no usable form"):
        rounds._read(upstream, b'{"x":%b}' % (b"[" * 100_000 + b"]" * 100_000))


def test_protocol_failures_stay_errors_and_others_are_not_hidden() -> None:
    reply = answer_failure(call_of("tools/call"), RpcError(7, "m", b"[1]"))
    assert json.loads(reply.error or b"") == {"code": 7, "message": "m", "data": [1]}
    reply = answer_failure(call_of("tools/call"), RemoteProtocolError("broken", code=-32700))
    assert json.loads(reply.error or b"") == {"code": -32700, "message": "broken"}
    with pytest.raises(ZeroDivisionError):
        answer_failure(call_of("tools/call"), ZeroDivisionError())


@pytest.mark.parametrize(
    ("method", "params", "local", "expected"),
    [
        (
            "tools/call",
            {"name": "a__t", "arguments": {"name": "a__t"}},
            "t",
            {"name": "t", "arguments": {"name": "a__t"}},
        ),
        ("prompts/get", {"name": "a__p"}, "é", {"name": "é"}),
        ("resources/read", {"uri": "a+x:1", "name": "n"}, "x:1", {"uri": "x:1", "name": "n"}),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "a__p", "x": 1}, "argument": {}},
            "p",
            {"ref": {"type": "ref/prompt", "name": "p", "x": 1}, "argument": {}},
        ),
        (
            "completion/complete",
            {"ref": {"type": "ref/resource", "uri": "a+x:{y}"}},
            "x:{y}",
            {"ref": {"type": "ref/resource", "uri": "x:{y}"}},
        ),
    ],
)
def test_a_request_gets_the_servers_own_name(method: str, params: Any, local: str, expected: Any) -> None:
    fields = decode_fields(json.dumps(params).encode())
    changed = localise(method, fields, local)
    assert {key: json.loads(bytes(raw)) for key, raw in changed.items()} == expected
    assert localise(method, changed, local) is changed, "nothing to do costs nothing"


def routes() -> Routes:
    naming = Naming("a", "a", True)
    schema = {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}
    raw = {"name": "t", "inputSchema": schema, "uri": "x:1", "uriTemplate": "db://{id}"}
    lists: dict[str, list[Entry]] = {}
    for kind in KEY_OF:
        entry = read_entry(kind, json.dumps(raw).encode(), naming)
        assert isinstance(entry, Entry)
        lists[kind] = [entry]
    return Routes(lists, [naming], ["a"])


@pytest.mark.parametrize(
    ("method", "params", "local"),
    [
        ("tools/call", {"name": "a__t"}, "t"),
        ("prompts/get", {"name": "a__t"}, "t"),
        ("resources/read", {"uri": "a+x:1"}, "x:1"),
        ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a__t"}}, "t"),
        ("completion/complete", {"ref": {"type": "ref/resource", "uri": "a+db://{id}"}}, "db://{id}"),
    ],
)
def test_a_request_finds_its_server(method: str, params: Any, local: str) -> None:
    target = resolve(routes(), call_of(method), decode_fields(json.dumps(params).encode()))
    assert (target.server, target.local) == ("a", local)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": None}),
        ("tools/call", {"name": 7}),
        ("tools/call", {"name": "t"}),
        ("resources/read", {"name": "a__t"}),
        ("completion/complete", {}),
        ("completion/complete", {"ref": "a__t"}),
        ("completion/complete", {"ref": {"type": "ref/prompt"}}),
        ("completion/complete", {"ref": {"name": "a__t"}}),
    ],
)
def test_a_request_that_names_nothing_is_refused(method: str, params: Any) -> None:
    with pytest.raises((RpcError, RemoteProtocolError)) as caught:
        resolve(routes(), call_of(method), decode_fields(json.dumps(params).encode()))
    assert caught.value.code in (-32602, -32600)


def test_headers_that_contradict_the_arguments_are_refused() -> None:
    fields = decode_fields(b'{"name":"a__t","arguments":{"r":"eu"}}')
    assert resolve(routes(), call_of("tools/call", headers={"mcp-param-region": "eu"}), fields).local == "t"
    for headers in ({"mcp-param-region": "us"}, {}):
        with pytest.raises(RpcError) as caught:
            resolve(routes(), call_of("tools/call", headers=headers), fields)
        assert caught.value.code == -32020
