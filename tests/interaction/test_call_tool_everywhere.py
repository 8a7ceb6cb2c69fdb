"""What else a call by `call_tool` may be: a task, one whose headers are mirrored, one that waits for its server."""

from pathlib import Path

import pytest

from tests.hard_cases.front import http_front, modern
from tests.hard_cases.test_h07_headers import ARGUMENTS, SERVER, mirrored
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, RefusedError, stage, text, value
from tests.interaction.tasks import DECLARED, ended, job, plain, task_server

CALL = "polyplex__call_tool"


def wrapped(params: Json) -> Json:
    """The params of a call as a call by `call_tool`."""
    inner = {key: params[key] for key in ("name", "arguments")}
    return {key: value for key, value in params.items() if key not in inner} | {"name": CALL, "arguments": inner}


async def test_a_task_of_2025_is_made_and_its_result_fetched(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy") as on:
        client = await on.legacy()
        task = (await client.request("tools/call", wrapped(job(polls=1))))["task"]
        assert (await ended(client, task["taskId"]))["status"] == "completed"
        assert value(await client.request("tasks/result", {"taskId": task["taskId"]})) == {}


async def test_a_search_is_no_task(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy") as on:
        client = await on.legacy()
        with pytest.raises(RefusedError):
            await client.request(
                "tools/call", {"name": "polyplex__find_tools", "arguments": {"query": "x"}, "task": {"ttl": 5}}
            )


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_a_modern_client_that_takes_tasks_gets_one(tmp_path: Path, server: str) -> None:
    async with task_server(tmp_path, "stdio", era=server) as on:
        client = on.modern(DECLARED)
        task = await client.request("tools/call", wrapped(plain(polls=1)))
        assert task["resultType"] == "task"
        assert value((await ended(client, task["taskId"]))["result"]) == {}


async def test_a_tool_that_needs_a_task_is_waited_for_where_the_client_has_none(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy", tasks="required") as on:
        client = await on.legacy(None, "2025-06-18")
        assert value(await client.request("tools/call", wrapped(plain(polls=1)))) == {}


async def test_headers_mirror_the_outer_call_here_and_the_inner_one_to_the_server(tmp_path: Path) -> None:
    async with (
        scripted_http(**SERVER) as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}, expose="search") as on,
        http_front(on) as front,
    ):
        await on.up("a")
        message, headers = modern("tools/call", name=CALL, arguments={"name": "a__echo", "arguments": ARGUMENTS})
        answer = await front.post(message, headers)
        assert (answer.status, '"echo"' in text(answer.message["result"])) == (200, True)
        assert mirrored(server, "tools/call") == {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": "tools/call",
            "mcp-name": "echo",
            "mcp-param-region": "=?base64?WsO8cmljaCA=?=",
            "mcp-param-count": "7",
        }
        wrong = [(name, "a__echo" if name == "Mcp-Name" else value) for name, value in headers]
        refused = await front.post(message, wrong)
        assert (refused.status, refused.code) == (400, -32020)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_that_is_still_starting_is_waited_for(tmp_path: Path, era: str) -> None:
    tools = [{"name": "echo", "description": "Says it again.", "inputSchema": {"type": "object"}}]
    async with stage(tmp_path, {"a": {"era": "legacy", "tools": tools}}, expose="search", start=False) as on:
        client = await on.legacy() if era == "legacy" else on.modern()
        assert value(await client.call(CALL, name="a__echo", arguments={"x": 1}))["arguments"] == {"x": 1}
        assert "a__echo(" in text(await client.call("polyplex__find_tools", query="say again"))


async def test_a_server_that_is_down_is_said_as_in_any_call(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"command": "/nowhere/to/be/found"}}, expose="search") as on:
        client = await on.legacy()
        for result in (await client.call(CALL, name="a__x"), await client.call("polyplex__find_tools", query="x")):
            assert result["isError"] is True
        assert "The server 'a' is not available" in text(await client.call(CALL, name="a__x"))
