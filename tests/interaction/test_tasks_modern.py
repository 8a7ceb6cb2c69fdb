"""The extension `io.modelcontextprotocol/tasks` between clients and servers that both have it."""

from pathlib import Path

import pytest

from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, RefusedError, stage, value
from tests.interaction.tasks import (
    ABLE,
    ACCEPTED,
    DECLARED,
    EXTENSION,
    FORM,
    asking,
    ended,
    plain,
    start_modern,
    task_server,
)

MODERN: Json = {"era": "modern"}
BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])
REQUIRED: Json = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


@BOTH
async def test_a_task_is_made_by_the_server_and_followed_to_its_end(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **MODERN) as on:
        client = on.modern(DECLARED)
        task = await start_modern(client, polls=1)
        assert task | {"taskId": ""} == {
            "resultType": "task", "taskId": "", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60000, "pollIntervalMs": 20,
        }  # fmt: skip
        assert task["taskId"] != "task-1"
        first = await client.request("tasks/get", {"taskId": task["taskId"]})
        assert first["resultType"] == "complete"
        assert (first["taskId"], first["status"]) == (task["taskId"], "working")
        last = await ended(client, task["taskId"])
        assert last["status"] == "completed"
        assert value(last["result"]) == {}


@BOTH
async def test_questions_pass_and_their_answers_reach_the_server(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **MODERN) as on:
        client = on.modern(DECLARED | ABLE)
        task = await start_modern(client, questions=[FORM, FORM])
        asked = await asking(client, task["taskId"], 2)
        assert asked["inputRequests"] == {"q0": FORM, "q1": FORM}
        update: Json = {"taskId": task["taskId"], "inputResponses": {"q1": ACCEPTED, "other": ACCEPTED}}
        answer = await client.request("tasks/update", update)
        assert {key: answer[key] for key in answer if key != "_meta"} == {"resultType": "complete"}
        assert set((await asking(client, task["taskId"]))["inputRequests"]) == {"q0"}
        await client.request("tasks/update", update | {"inputResponses": {"q0": ACCEPTED}})
        assert value((await ended(client, task["taskId"]))["result"]) == {"q0": ACCEPTED, "q1": ACCEPTED}


async def test_the_name_header_names_the_servers_own_id(tmp_path: Path) -> None:
    async with (
        scripted_http(era="modern", tasks="optional") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        await client.request("tasks/get", {"taskId": task["taskId"]})
        await client.request("tasks/update", {"taskId": task["taskId"], "inputResponses": {}})
        await client.request("tasks/cancel", {"taskId": task["taskId"]})
        sent = [(head["mcp-method"], head.get("mcp-name")) for _, head, _ in server.requests if "mcp-method" in head]
        assert [each for each in sent if each[0].startswith("tasks/")] == [
            ("tasks/get", "task-1"), ("tasks/update", "task-1"), ("tasks/cancel", "task-1"),
        ]  # fmt: skip


async def test_cancelling_is_acknowledged_more_than_once(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        for _ in range(2):
            answer = await client.request("tasks/cancel", {"taskId": task["taskId"]})
            assert {key: answer[key] for key in answer if key != "_meta"} == {"resultType": "complete"}
        assert (await ended(client, task["taskId"]))["status"] == "cancelled"


async def test_a_failed_task_has_its_error_and_a_failed_tool_a_result(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = on.modern(DECLARED)
        error: Json = {"code": -32603, "message": "broken"}
        failed = await ended(client, (await start_modern(client, error=error))["taskId"])
        assert (failed["status"], failed["error"]) == ("failed", error)
        result: Json = {"content": [], "isError": True}
        done = await ended(client, (await start_modern(client, result=result))["taskId"])
        assert (done["status"], done["result"]["isError"]) == ("completed", True)


async def test_clients_without_the_extension_get_no_task_and_cannot_ask_after_one(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="modern", needs=True) as on:
        able, client = on.modern(DECLARED), on.modern()
        task = await start_modern(able, hold=True)
        with pytest.raises(RefusedError, match="-32021") as refused:
            await client.request("tools/call", plain())
        assert refused.value.data == REQUIRED
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            with pytest.raises(RefusedError, match="-32021") as refused:
                await client.request(method, {"taskId": task["taskId"], "inputResponses": {}})
            assert refused.value.data == REQUIRED
        with pytest.raises(RefusedError, match="-32021"):
            await client.request("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})


async def test_methods_that_the_extension_does_not_have_are_unknown(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = on.modern(DECLARED)
        task = await start_modern(client)
        for method in ("tasks/result", "tasks/list"):
            with pytest.raises(RefusedError, match="-32601"):
                await client.request(method, {"taskId": task["taskId"]})


async def test_the_extension_is_offered_where_a_server_has_it(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        await on.up("a")
        capabilities = (await on.modern().request("server/discover"))["capabilities"]
        assert capabilities["extensions"] == {EXTENSION: {}}
        assert "tasks" not in capabilities


async def test_ids_that_were_not_given_out_are_refused(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = on.modern(DECLARED)
        await start_modern(client, hold=True)
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            for identifier in ("task-1", "x" * 80, ""):
                with pytest.raises(RefusedError, match="-32602"):
                    await client.request(method, {"taskId": identifier, "inputResponses": {}})
        assert on.received("a", "tasks/get") == []


@BOTH
async def test_changes_of_watched_tasks_arrive_on_the_clients_stream(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **MODERN) as on:
        client = on.modern(DECLARED)
        task, other = await start_modern(client, hold=True), await start_modern(client, hold=True)
        wanted = {"taskIds": [task["taskId"], "made up"]}
        listening = client.send("subscriptions/listen", {"notifications": wanted})
        await client.until(lambda: client.notices("notifications/subscriptions/acknowledged"))
        (acknowledged,) = client.notices("notifications/subscriptions/acknowledged")
        assert acknowledged["notifications"] == {"taskIds": [task["taskId"]]}
        await client.call("a__finish")
        await client.until(lambda: client.notices("notifications/tasks"))
        (change,) = client.notices("notifications/tasks")
        assert change["_meta"] == {"io.modelcontextprotocol/subscriptionId": listening}
        told = {key: change[key] for key in change if key != "_meta"}
        got = await client.request("tasks/get", {"taskId": task["taskId"]})
        assert told == {key: got[key] for key in got if key not in ("_meta", "resultType")}
        assert other["taskId"] not in str(change)
        client.cancel(listening)


async def test_a_task_of_a_client_that_takes_none_is_the_servers_mistake(tmp_path: Path) -> None:
    rogue: Json = {"resultType": "task", "taskId": "t", "status": "working", "createdAt": "x", "lastUpdatedAt": "x"}
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        result = await on.modern().request("tools/call", {"name": "a__result", "arguments": rogue})
        assert result["isError"]
        assert "not usable" in result["content"][0]["text"]
