"""H7: names are rewritten on the way, so headers that mirror the body are derived anew, and what differs is refused."""

from pathlib import Path
from typing import Any

import pytest

from tests.hard_cases.front import http_front, modern
from tests.interaction.scripted_http import ScriptedHttp, scripted_http
from tests.interaction.stage import Json, Stage, stage, text

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"count": {"type": "integer", "x-mcp-header": "Count"}}},
        "free": {"type": "string"},
    },
}
ECHO: Json = {"name": "echo", "inputSchema": SCHEMA}
ODD: Json = {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"x-mcp-header": "not a token"}}}}
SERVER: Json = {
    "era": "modern",
    "tools": [ECHO, ODD],
    "prompts": [{"name": "p é"}],
    "resources": [{"uri": "file:///x", "name": "x"}],
}
ARGUMENTS: Json = {"region": "Zürich ", "deep": {"count": 7}, "free": "f"}


def mirrored(server: ScriptedHttp, method: str) -> dict[str, str]:
    """The headers of the protocol on the last request of a method."""
    found = [headers for _, headers, message in server.requests if message and message.get("method") == method]
    return {name: value for name, value in found[-1].items() if name.startswith("mcp-") and name != "mcp-session-id"}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_gets_headers_that_mirror_what_it_gets(tmp_path: Path, era: str) -> None:
    async with scripted_http(**SERVER) as server, stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
        client = on.modern() if era == "modern" else await on.legacy()
        await on.up("a")
        base = {"mcp-protocol-version": "2026-07-28"}
        await client.call("a__echo", **ARGUMENTS)
        assert mirrored(server, "tools/call") == base | {
            "mcp-method": "tools/call",
            "mcp-name": "echo",
            "mcp-param-region": "=?base64?WsO8cmljaCA=?=",
            "mcp-param-count": "7",
        }
        await client.call("a__echo", region=None, deep={}, free="f")
        assert mirrored(server, "tools/call").keys() == {*base, "mcp-method", "mcp-name"}, "null and absent have none"
        await client.request("prompts/get", {"name": (await client.names("prompts/list", "prompts"))[0]})
        assert mirrored(server, "prompts/get")["mcp-name"] == "=?base64?cCDDqQ==?="
        await client.request("resources/read", {"uri": "a+file:///x"})
        assert mirrored(server, "resources/read")["mcp-name"] == "file:///x"
        await client.request(
            "completion/complete",
            {
                "ref": {"type": "ref/resource", "uri": "a+file:///x"},
                "argument": {"name": "n", "value": ""},
            },
        )
        assert mirrored(server, "completion/complete") == base | {"mcp-method": "completion/complete"}


async def test_a_tool_whose_headers_break_the_rules_is_left_out_over_http_only(tmp_path: Path) -> None:
    async with scripted_http(**SERVER) as server:
        servers: dict[str, Json] = {"a": {"url": server.url, "type": "http"}, "b": SERVER}
        async with stage(tmp_path, servers) as on:
            client = on.modern()
            await on.up("a", "b")
            assert sorted(await client.names()) == ["a__echo", "b__echo", "b__odd"]
            assert [item.name for upstream in on.upstreams("a") for item in upstream.set_aside] == ["odd"]


def call(**arguments: Any) -> tuple[Json, list[tuple[str, str]]]:
    return modern("tools/call", name="a__echo", arguments=arguments)


async def in_front(on: Stage) -> None:
    await on.up("a")
    await on.modern().names()


PARAMS = [("Mcp-Param-Region", "=?base64?WsO8cmljaCA=?="), ("Mcp-Param-Count", "7.0")]


async def test_a_client_that_says_the_same_twice_is_served(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": SERVER}) as on, http_front(on) as front:
        await in_front(on)
        message, headers = call(**ARGUMENTS)
        answer = await front.post(message, [*headers, *PARAMS, ("Mcp-Param-Unknown", "x")])
        assert (answer.status, '"echo"' in text(answer.message["result"])) == (200, True)


@pytest.mark.parametrize(
    ("drop", "add"),
    [
        ("Mcp-Method", []),
        ("Mcp-Name", []),
        ("MCP-Protocol-Version", []),
        ("Mcp-Param-Region", []),
        ("Mcp-Method", [("Mcp-Method", "tools/list")]),
        ("Mcp-Name", [("Mcp-Name", "echo")]),
        ("Mcp-Name", [("Mcp-Name", "A__ECHO")]),
        ("Mcp-Param-Region", [("Mcp-Param-Region", "Bern")]),
        ("Mcp-Param-Region", [("Mcp-Param-Region", "=?base64?WsO8cmljaCA?=")]),
        ("Mcp-Param-Count", [("Mcp-Param-Count", "8")]),
        ("MCP-Protocol-Version", [("MCP-Protocol-Version", "2026-07-29")]),
    ],
)
async def test_a_client_whose_header_and_body_differ_is_refused(
    tmp_path: Path, drop: str, add: list[tuple[str, str]]
) -> None:
    async with stage(tmp_path, {"a": SERVER}) as on, http_front(on) as front:
        await in_front(on)
        message, headers = call(**ARGUMENTS)
        kept = [(name, value) for name, value in [*headers, *PARAMS] if name != drop]
        answer = await front.post(message, [*kept, *add])
        assert (answer.status, answer.code) == (400, -32020)
        assert on.received("a", "tools/call") == []


@pytest.mark.parametrize("name", ["Mcp-Method", "Mcp-Name", "MCP-Protocol-Version", "Mcp-Param-Region"])
async def test_a_header_that_comes_twice_is_refused_even_where_both_say_the_same(tmp_path: Path, name: str) -> None:
    async with stage(tmp_path, {"a": SERVER}) as on, http_front(on) as front:
        await in_front(on)
        message, headers = call(**ARGUMENTS)
        headers += PARAMS
        answer = await front.post(message, [*headers, next(each for each in headers if each[0] == name)])
        assert answer.status == 400
        assert on.received("a", "tools/call") == []


async def test_a_header_for_a_value_that_the_body_does_not_have_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": SERVER}) as on, http_front(on) as front:
        await in_front(on)
        message, headers = call(free="f")
        answer = await front.post(message, [*headers, ("Mcp-Param-Region", "x")])
        assert (answer.status, answer.code) == (400, -32020)
