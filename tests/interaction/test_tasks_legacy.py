"""Core tasks of 2025-11-25 between clients and servers that both have them."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.interaction.stage import Json, RefusedError, eventually, stage, value
from tests.interaction.tasks import ABLE, ACCEPTED, FORM, RELATED, ended, job, plain, start, task_server

LEGACY: Json = {"era": "legacy"}
BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])


@BOTH
async def test_a_task_is_made_followed_and_its_result_fetched(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **LEGACY) as on:
        client = await on.legacy()
        result = await client.request("tools/call", job(polls=1, ttl=5000))
        task = result["task"]
        assert result["_meta"] == {"vendor/x": 1}
        assert task | {"taskId": ""} == {
            "taskId": "", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 5000, "pollInterval": 20,
        }  # fmt: skip
        assert task["taskId"] != "task-1"
        first = await client.request("tasks/get", {"taskId": task["taskId"]})
        assert first == task
        assert (await ended(client, task["taskId"]))["status"] == "completed"
        outcome = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert outcome["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        assert value(outcome) == {}


@BOTH
async def test_the_server_asks_on_the_stream_of_the_result_and_names_the_public_id(
    tmp_path: Path, transport: str
) -> None:
    async with task_server(tmp_path, transport, **LEGACY) as on:
        client = await on.legacy(ABLE, create=lambda params: ACCEPTED)
        task = await start(client, questions=[FORM])
        assert (await client.request("tasks/get", {"taskId": task["taskId"]}))["status"] == "input_required"
        outcome = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert value(outcome) == {"q0": ACCEPTED}
        (asked,) = client.asked("elicitation/create")
        assert asked["params"] == FORM["params"] | {"_meta": {RELATED: {"taskId": task["taskId"]}}}


async def test_an_answer_names_the_task_by_the_id_that_its_reader_knows(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = await on.legacy(ABLE, create=lambda params: ACCEPTED | {"_meta": params["_meta"] | {"x": 1}})
        task = await start(client, questions=[FORM])
        await client.request("tasks/result", {"taskId": task["taskId"]})
        (answer,) = [message for message in on.journal("a") if message.get("id") == "task-1-q0"]
        assert answer["result"] == ACCEPTED | {"_meta": {"x": 1, RELATED: {"taskId": "task-1"}}}


async def test_a_task_is_its_callers_alone(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client, other = await on.legacy(), await on.legacy()
        binding = other.session.context.binding
        other.session.context.binding = msgspec.structs.replace(binding, caller="somebody else")
        task, theirs = await start(client), await start(other)
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            with pytest.raises(RefusedError, match="-32602: task not found"):
                await other.request(method, {"taskId": task["taskId"]})
        assert [each["taskId"] for each in (await client.request("tasks/list"))["tasks"]] == [task["taskId"]]
        assert [each["taskId"] for each in (await other.request("tasks/list"))["tasks"]] == [theirs["taskId"]]


async def test_a_question_that_comes_outside_of_any_call_reaches_the_client_of_the_task(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy", onGet=True) as on:
        client = await on.legacy(ABLE, create=lambda params: ACCEPTED)
        other = await on.legacy(ABLE)
        task = await start(client, questions=[FORM])
        assert (await ended(client, task["taskId"]))["status"] == "completed"
        assert len(client.asked("elicitation/create")) == 1
        assert other.asked("elicitation/create") == []


async def test_the_result_is_waited_for_and_is_exactly_the_error_of_the_call(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = await on.legacy()
        task = await start(client, hold=True, error={"code": -32050, "message": "broken", "data": {"x": 1}})
        waiting = client.send("tasks/result", {"taskId": task["taskId"]})
        await client.call("a__finish")
        with pytest.raises(RefusedError) as refused:
            await client.response(waiting)
        assert (refused.value.code, refused.value.message, refused.value.data) == (-32050, "broken", {"x": 1})
        assert (await ended(client, task["taskId"]))["status"] == "failed"


@BOTH
async def test_status_and_progress_of_a_task_reach_its_client_alone(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **LEGACY) as on:
        client, other = await on.legacy(), await on.legacy()
        made = await client.request("tools/call", job(hold=True) | {"_meta": {"progressToken": "mine"}})
        waiting = client.send("tasks/result", {"taskId": made["task"]["taskId"]})
        await other.call("a__finish")
        await client.response(waiting)
        await client.until(lambda: client.notices("notifications/tasks/status"))
        (status,) = client.notices("notifications/tasks/status")
        assert (status["taskId"], status["status"]) == (made["task"]["taskId"], "completed")
        assert client.notices("notifications/progress") == [{"progressToken": "mine", "progress": 1}]
        assert other.notices("notifications/tasks/status") == other.notices("notifications/progress") == []


async def test_a_task_is_cancelled_once(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = await on.legacy()
        task = await start(client, hold=True)
        cancelled = await client.request("tasks/cancel", {"taskId": task["taskId"]})
        assert (cancelled["taskId"], cancelled["status"]) == (task["taskId"], "cancelled")
        with pytest.raises(RefusedError, match="-32602"):
            await client.request("tasks/cancel", {"taskId": task["taskId"]})


async def test_tasks_of_all_servers_are_listed_page_by_page_under_the_ids_that_clients_know(tmp_path: Path) -> None:
    legacy: Json = {"era": "legacy", "tasks": "optional", "pageSize": 2}
    silent: Json = legacy | {"listing": False, "pageSize": 100}
    async with stage(tmp_path, {"a": legacy, "b": silent, "c": legacy | {"pageSize": 100}}) as on:
        await on.up("a", "b", "c")
        client = await on.legacy()
        names = ("a__job", "a__job", "a__job", "b__job", "c__job")
        made = [(await client.request("tools/call", job(hold=True) | {"name": name}))["task"] for name in names]
        listed: list[Json] = []
        params: Json = {}
        while True:
            page = await client.request("tasks/list", params)
            listed += page["tasks"]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
        assert sorted(listed, key=lambda task: task["taskId"]) == sorted(made, key=lambda task: task["taskId"])
        with pytest.raises(RefusedError, match="-32602"):
            await client.request("tasks/list", {"cursor": "made up"})


async def test_tools_are_offered_as_tasks_to_those_who_know_tasks(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy", tasks="required") as on:
        client = await on.legacy()
        tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
        assert tools["a__job"]["execution"] == {"taskSupport": "optional"}, "polyplex waits for who wants no task"
        assert "execution" not in tools["a__echo"]
        modern = on.modern()
        tools = {tool["name"]: tool for tool in (await modern.request("tools/list"))["tools"]}
        assert "execution" not in tools["a__job"]


async def test_a_client_that_wants_no_task_gets_the_result_of_a_tool_that_makes_tasks_only(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy", tasks="required") as on:
        client = await on.legacy(ABLE, create=lambda params: ACCEPTED)
        result = await client.request("tools/call", plain(questions=[FORM], polls=3))
        assert json.loads(result["content"][0]["text"]) == {"q0": ACCEPTED}
        assert "_meta" not in result
        (asked,) = client.asked("elicitation/create")
        assert asked["params"] == FORM["params"], "it names no task, as the client knows of none"
        assert (await client.request("tasks/list"))["tasks"] == []


async def test_giving_up_a_call_that_waits_cancels_the_task_behind_it(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy", tasks="required") as on:
        client = await on.legacy()
        call = client.send("tools/call", plain(hold=True))
        await eventually(lambda: on.received("a", "tasks/result"))
        client.cancel(call)
        await eventually(lambda: on.received("a", "tasks/cancel"))
        assert [message["params"] for message in on.received("a", "tasks/cancel")] == [{"taskId": "task-1"}]


async def test_a_tool_without_tasks_cannot_be_called_as_one(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = await on.legacy()
        with pytest.raises(RefusedError, match="-32601"):
            await client.request("tools/call", {"name": "a__echo", "arguments": {}, "task": {}})
        with pytest.raises(RefusedError, match="-32602"):
            await client.request("tools/call", {"name": "a__job", "arguments": {}, "task": 5})
        result = await client.request("tools/call", {"name": "a__echo", "arguments": {}, "task": None})
        assert "task" not in value(result)


async def test_ids_that_were_not_given_out_are_refused(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = await on.legacy()
        task = await start(client)
        changed = task["taskId"][:-2] + ("AA" if task["taskId"][-2:] != "AA" else "BB")
        for identifier in ("task-1", "", "a" * 200, changed, 5, None):
            for method in ("tasks/get", "tasks/result", "tasks/cancel"):
                with pytest.raises(RefusedError, match="-32602"):
                    await client.request(method, {"taskId": identifier})
        with pytest.raises(RefusedError, match="-32602"):
            await client.request("tasks/get", {})


async def test_tasks_end_with_the_process_that_ran_them(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = await on.legacy()
        task = await start(client, hold=True)
        waiting = client.send("tasks/result", {"taskId": task["taskId"]})
        await client.call("a__die")
        with pytest.raises(RefusedError, match="-32602: Task not found"):
            await client.response(waiting)
        with pytest.raises(RefusedError, match="-32602: Task not found"):
            await client.request("tasks/get", {"taskId": task["taskId"]})


async def test_older_clients_know_no_tasks(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="legacy", tasks="required") as on:
        client = await on.legacy(None, "2025-06-18")
        assert "tasks" not in client.initialized["capabilities"]
        tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
        assert "execution" not in tools["a__job"]
        result = await client.request("tools/call", job())
        assert value(result) == {}
        with pytest.raises(RefusedError, match="-32601"):
            await client.request("tasks/list")


async def test_the_capability_is_declared_where_a_server_has_it(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        await on.up("a")
        client = await on.legacy()
        core = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
        assert client.initialized["capabilities"]["tasks"] == core
    async with stage(tmp_path, {"b": LEGACY}) as on:
        await on.up("b")
        client = await on.legacy()
        assert "tasks" not in client.initialized["capabilities"]
