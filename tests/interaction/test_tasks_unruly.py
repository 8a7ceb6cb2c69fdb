"""Tasks that never end, pages that have nothing on them, and clients that change their mind while they wait."""

from pathlib import Path

import pytest

from tests.interaction.stage import Json, RefusedError, eventually, stage
from tests.interaction.tasks import ABLE, ACCEPTED, DECLARED, FORM, plain, start, start_modern, task_server

MODERN: Json = {"era": "modern"}
LEGACY: Json = {"era": "legacy"}


async def test_empty_pages_without_end_are_left_to_the_client(tmp_path: Path) -> None:
    pages: Json = {"tasks/list": {"tasks": [], "nextCursor": "again"}}
    async with task_server(tmp_path, "stdio", **LEGACY, broken=pages) as on:
        client = await on.legacy(ABLE)
        first = await client.request("tasks/list", {})
        assert first["tasks"] == []
        second = await client.request("tasks/list", {"cursor": first["nextCursor"]})
        assert (second["tasks"], bool(second["nextCursor"])) == ([], True)
        assert len(on.received("a", "tasks/list")) < 50


async def test_a_task_that_is_over_without_a_result_does_not_hold_the_client(tmp_path: Path) -> None:
    over: Json = {"taskId": "task-1", "status": "completed", "createdAt": "x", "lastUpdatedAt": "x", "ttl": None}
    servers: Json = {"a": {**LEGACY, "tasks": "optional", "broken": {"tasks/get": over}}}
    async with stage(tmp_path, servers, servers={"a": {"timeoutSeconds": 0.2}}) as on:
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        with pytest.raises(RefusedError, match="tasks/result took too long"):
            await client.request("tasks/get", {"taskId": task["taskId"]})


async def test_a_call_does_not_wait_for_a_modern_servers_task_for_ever(tmp_path: Path) -> None:
    servers: Json = {"a": {**MODERN, "tasks": "optional"}}
    async with stage(tmp_path, servers, servers={"a": {"timeoutSeconds": 0.2, "maxTimeoutSeconds": 0.2}}) as on:
        client = await on.legacy()
        result = await client.request("tools/call", plain(hold=True))
        assert result["isError"]
        assert "took too long" in result["content"][0]["text"]
        await eventually(lambda: on.received("a", "tasks/cancel"))


async def test_cancelling_a_task_ends_the_wait_for_its_result_at_once(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = await on.legacy()
        task = await start(client, hold=True, poll=60_000)
        waiting = client.send("tasks/result", {"taskId": task["taskId"]})
        await eventually(lambda: on.received("a", "tasks/get"))
        await client.request("tasks/cancel", {"taskId": task["taskId"]})
        with pytest.raises(RefusedError, match="cancelled"):
            await client.response(waiting)


@pytest.mark.parametrize("error", [{}, {"code": "x"}, "broken", 5])
async def test_the_error_of_a_task_reaches_clients_with_a_code_and_a_message(tmp_path: Path, error: object) -> None:
    over: Json = {"taskId": "task-1", "status": "failed", "createdAt": "x", "lastUpdatedAt": "x", "ttlMs": None}
    async with task_server(tmp_path, "stdio", **MODERN, broken={"tasks/get": over | {"error": error}}) as on:
        with pytest.raises(RefusedError, match="-32603"):
            await (await on.legacy()).request("tools/call", plain(hold=True))
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        got = (await client.request("tasks/get", {"taskId": task["taskId"]}))["error"]
        assert (got["code"], type(got["message"])) == (-32603, str)


async def test_a_task_that_fails_for_want_of_a_visit_becomes_a_round_with_the_link(tmp_path: Path) -> None:
    page: Json = {"mode": "url", "url": "https://a.example/", "elicitationId": "1", "message": "go"}
    error: Json = {"code": -32042, "message": "visit", "data": {"elicitations": [page]}}
    async with task_server(tmp_path, "stdio", **LEGACY, **{"tasks": "required"}) as on:
        client = on.modern({"elicitation": {"url": {}}})
        result = await client.request("tools/call", plain(error=error))
        (question,) = result["inputRequests"].values()
        assert question["params"]["url"] == page["url"]


async def test_what_was_answered_is_not_asked_by_the_next_wait(tmp_path: Path) -> None:
    stale: Json = {
        "taskId": "task-1",
        "status": "input_required",
        "createdAt": "x",
        "lastUpdatedAt": "x",
        "ttlMs": None,
    }
    stale |= {"inputRequests": {"who": FORM}, "pollIntervalMs": 20}
    async with task_server(tmp_path, "stdio", **MODERN, broken={"tasks/get": stale}) as on:
        client = await on.legacy(ABLE, create=lambda _: ACCEPTED)
        identifier = (await start(client, hold=True))["taskId"]
        first = client.send("tasks/result", {"taskId": identifier})
        await eventually(lambda: on.received("a", "tasks/update"))
        seen = len(on.received("a", "tasks/get"))
        await eventually(lambda: len(on.received("a", "tasks/get")) > seen)  # the answer to the update has come
        client.cancel(first)
        client.send("tasks/result", {"taskId": identifier})
        seen = len(on.received("a", "tasks/get"))
        await eventually(lambda: len(on.received("a", "tasks/get")) > seen + 3)
        assert len(client.asked("elicitation/create")) == 1
