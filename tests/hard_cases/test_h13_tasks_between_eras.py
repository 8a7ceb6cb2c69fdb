"""Tasks between the eras: what the client knows of them and what its server does never match (H13)."""

import asyncio
from pathlib import Path

import pytest

from tests.interaction.parked import finished
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Client, Json, RefusedError, eventually, stage, text, value
from tests.interaction.tasks import (
    ABLE,
    ACCEPTED,
    DECLARED,
    EXTENSION,
    FORM,
    RELATED,
    asking,
    ended,
    plain,
    start,
    start_modern,
    task_server,
)

MODERN: Json = {"era": "modern"}
LEGACY: Json = {"era": "legacy"}
BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])
SAMPLE: Json = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}


# -- a legacy client, a modern server
@BOTH
async def test_a_legacy_client_gets_a_modern_servers_task_in_its_own_words(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **MODERN) as on:
        client = await on.legacy()
        tools = {tool["name"]: tool for tool in (await client.request("tools/list"))["tools"]}
        assert tools["a__job"]["execution"] == {"taskSupport": "optional"}
        task = await start(client, polls=1)
        assert task | {"taskId": ""} == {
            "taskId": "", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000, "pollInterval": 20,
        }  # fmt: skip
        assert await client.request("tasks/get", {"taskId": task["taskId"]}) == task
        last = await ended(client, task["taskId"])
        assert last == task | {"status": "completed"}
        outcome = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert set(outcome) == {"content", "_meta"}
        assert outcome["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        assert value(outcome) == {}


@BOTH
async def test_a_modern_servers_questions_become_requests_that_name_the_task(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **MODERN) as on:
        said: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "ho"}}
        client = await on.legacy(ABLE, create=lambda params: ACCEPTED, createMessage=lambda params: said)
        task = await start(client, questions=[FORM, SAMPLE], polls=1)
        outcome = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert value(outcome) == {"q0": ACCEPTED, "q1": said}
        (form,) = client.asked("elicitation/create")
        assert form["params"] == FORM["params"] | {"_meta": {RELATED: {"taskId": task["taskId"]}}}
        assert len(client.asked("sampling/createMessage")) == 1


async def test_two_waits_for_one_result_ask_once(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = await on.legacy(ABLE)
        task = await start(client, questions=[FORM], poll=1)
        waits = [client.send("tasks/result", {"taskId": task["taskId"]}) for _ in range(2)]
        await client.until(lambda: client.asked("elicitation/create"))
        before = len(on.received("a", "tasks/get"))
        await eventually(lambda: len(on.received("a", "tasks/get")) > before + 3)
        (asked,) = client.asked("elicitation/create")
        client.respond(asked["id"], ACCEPTED)
        for wait in waits:
            assert value(await client.response(wait)) == {"q0": ACCEPTED}
        assert len(on.received("a", "tasks/update")) == 1


async def test_a_question_is_asked_again_where_the_first_who_waited_left(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = await on.legacy(ABLE)
        task = await start(client, questions=[FORM], poll=1)
        first = client.send("tasks/result", {"taskId": task["taskId"]})
        await client.until(lambda: client.asked("elicitation/create"))
        client.cancel(first)
        await client.until(lambda: client.notices("notifications/cancelled"))
        client.answers["elicitation/create"] = lambda params: ACCEPTED
        outcome = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert value(outcome) == {"q0": ACCEPTED}


async def test_an_answer_without_a_task_is_held_as_a_finished_one(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="modern", immediate=True) as on:
        client = await on.legacy()
        task = await start(client, ttl=5000)
        assert (task["status"], task["ttl"]) == ("completed", 5000)
        assert await client.request("tasks/get", {"taskId": task["taskId"]}) == task
        outcome = await client.request("tasks/result", {"taskId": task["taskId"]})
        assert value(outcome) == {}
        assert outcome["_meta"] == {RELATED: {"taskId": task["taskId"]}}
        assert "resultType" not in outcome
        with pytest.raises(RefusedError, match="-32602.*over already"):
            await client.request("tasks/cancel", {"taskId": task["taskId"]})
        failing = await start(client, result={"content": [], "isError": True})
        assert failing["status"] == "failed"
        listed = (await client.request("tasks/list"))["tasks"]
        assert [each["taskId"] for each in listed] == [task["taskId"], failing["taskId"]]


async def test_a_held_task_ends_with_its_ttl(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="modern", immediate=True) as on:
        client = await on.legacy()
        task = await start(client, ttl=1)
        with pytest.raises(RefusedError, match="-32602: task not found: it has expired"):
            await _until_gone(client, task["taskId"])
        assert (await client.request("tasks/list"))["tasks"] == []


async def _until_gone(client: Client, identifier: str) -> None:
    async with asyncio.timeout(10):
        while True:
            await client.request("tasks/get", {"taskId": identifier})


@BOTH
async def test_a_legacy_client_that_wants_no_task_gets_the_result(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, era="modern", needs=True) as on:
        client = await on.legacy(ABLE, create=lambda params: ACCEPTED)
        params = plain(questions=[FORM], polls=2, say=["half", "nearly"]) | {"_meta": {"progressToken": 7}}
        result = await client.request("tools/call", params)
        assert value(result) == {"q0": ACCEPTED}
        assert set(result) == {"content"}
        assert client.asked("elicitation/create")[0]["params"] == FORM["params"]
        progress = client.notices("notifications/progress")
        assert [each["message"] for each in progress][:2] == ["half", "nearly"]
        assert [each["progress"] for each in progress] == sorted({each["progress"] for each in progress})
        assert {each["progressToken"] for each in progress} == {7}
        assert (await client.request("tasks/list"))["tasks"] == []


async def test_a_server_that_needs_the_extension_without_saying_so_is_served_all_the_same(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", era="modern", needs=True, undeclared=True) as on:
        client = await on.legacy()
        assert value(await client.request("tools/call", plain())) == {}
        sent = [message["params"]["_meta"] for message in on.received("a", "tools/call")]
        capabilities = [meta["io.modelcontextprotocol/clientCapabilities"] for meta in sent]
        assert capabilities == [{}, {"extensions": {EXTENSION: {}}}]


async def test_what_the_client_cannot_answer_ends_the_call_and_the_task(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = await on.legacy()
        with pytest.raises(RefusedError, match="elicitation"):
            await client.request("tools/call", plain(questions=[FORM]))
        await eventually(lambda: on.received("a", "tasks/cancel"))


async def test_giving_up_the_call_cancels_the_modern_servers_task(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = await on.legacy()
        call = client.send("tools/call", plain(hold=True, poll=1))
        await eventually(lambda: on.received("a", "tasks/get"))
        client.cancel(call)
        await eventually(lambda: on.received("a", "tasks/cancel"))


async def test_the_errors_of_a_modern_servers_task_are_those_of_the_call(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = await on.legacy()
        error: Json = {"code": -32050, "message": "broken", "data": [1]}
        task = await start(client, error=error)
        for params, method in ((plain(error=error), "tools/call"), ({"taskId": task["taskId"]}, "tasks/result")):
            with pytest.raises(RefusedError) as refused:
                await client.request(method, params)
            assert (refused.value.code, refused.value.message, refused.value.data) == (-32050, "broken", [1])


async def test_once_cancelled_a_task_stays_so_whatever_its_server_does(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **MODERN) as on:
        client = await on.legacy()
        task = await start(client, hold=True, stubborn=True)
        cancelled = await client.request("tasks/cancel", {"taskId": task["taskId"]})
        assert cancelled["status"] == "cancelled"
        await client.call("a__finish")
        assert (await client.request("tasks/get", {"taskId": task["taskId"]}))["status"] == "cancelled"
        with pytest.raises(RefusedError, match="cancelled"):
            await client.request("tasks/result", {"taskId": task["taskId"]})
        with pytest.raises(RefusedError, match="-32602"):
            await client.request("tasks/cancel", {"taskId": task["taskId"]})


# -- a modern client, a legacy server
@BOTH
async def test_a_modern_client_gets_a_legacy_servers_task_in_its_own_words(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **LEGACY) as on:
        await on.up("a")
        client = on.modern(DECLARED)
        assert (await client.request("server/discover"))["capabilities"]["extensions"] == {EXTENSION: {}}
        task = await start_modern(client, polls=1, ttl=1000.4)
        assert task | {"taskId": "", "_meta": {}} == {
            "resultType": "task", "taskId": "", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 1000, "pollIntervalMs": 20, "_meta": {},
        }  # fmt: skip
        first = await client.request("tasks/get", {"taskId": task["taskId"]})
        assert (first["resultType"], first["status"]) == ("complete", "working")
        last = await ended(client, task["taskId"])
        assert last["status"] == "completed"
        assert value(last["result"]) == {}
        assert RELATED not in str(last)
        assert not {"ttl", "pollInterval"} & set(last)


@BOTH
async def test_a_legacy_servers_questions_wait_for_updates(tmp_path: Path, transport: str) -> None:
    async with task_server(tmp_path, transport, **LEGACY) as on:
        client = on.modern(DECLARED | ABLE)
        task = await start_modern(client, questions=[FORM, SAMPLE])
        asked = await asking(client, task["taskId"], 2)
        questions = {each["method"]: (key, each) for key, each in asked["inputRequests"].items()}
        assert [each for _, each in questions.values()] == [FORM, SAMPLE]
        assert (await asking(client, task["taskId"], 2))["inputRequests"] == asked["inputRequests"]
        said: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "ho"}}
        answers = {questions["elicitation/create"][0]: ACCEPTED, "unknown": {}}
        update = {"taskId": task["taskId"], "inputResponses": answers}
        assert await client.request("tasks/update", update) == {"resultType": "complete"}
        assert set((await asking(client, task["taskId"]))["inputRequests"]) == {questions["sampling/createMessage"][0]}
        update["inputResponses"] = {questions["sampling/createMessage"][0]: said}
        await client.request("tasks/update", update)
        assert value((await ended(client, task["taskId"]))["result"]) == {"q0": ACCEPTED, "q1": said}


async def test_asking_after_a_task_does_not_blur_whose_call_a_question_belongs_to(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = on.modern(DECLARED | ABLE)
        params: Json = {"name": "a__asks", "arguments": {"questions": [FORM | {"delay": 0}]}}
        task = await start_modern(client, hold=True, poll=1)
        calls = [client.send("tasks/get", {"taskId": task["taskId"]}) for _ in range(5)]
        first = await client.request("tools/call", params)
        assert first["resultType"] == "input_required"
        assert [(await client.response(call))["status"] for call in calls] == ["working"] * 5
        await finished(client, params)


async def test_errors_and_failed_tools_of_a_legacy_server_keep_apart(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = on.modern(DECLARED)
        error: Json = {"code": -30001, "message": "broken"}
        failed = await ended(client, (await start_modern(client, error=error))["taskId"])
        assert (failed["status"], failed["error"]) == ("failed", error)
        assert "result" not in failed
        done = await ended(client, (await start_modern(client, result={"content": [], "isError": True}))["taskId"])
        assert (done["status"], done["result"]["isError"]) == ("completed", True)


async def test_a_modern_client_may_cancel_what_is_over(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = on.modern(DECLARED | ABLE)
        task = await start_modern(client, questions=[FORM])
        await asking(client, task["taskId"])
        for _ in range(2):
            assert await client.request("tasks/cancel", {"taskId": task["taskId"]}) == {"resultType": "complete"}
        assert (await ended(client, task["taskId"]))["status"] == "cancelled"
        with pytest.raises(RefusedError, match="-32602"):
            await client.request("tasks/cancel", {"taskId": "made up"})


async def test_a_modern_client_watches_a_legacy_servers_task(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        listening = client.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        await client.until(lambda: client.notices("notifications/subscriptions/acknowledged"))
        await client.call("a__finish")
        await client.until(lambda: client.notices("notifications/tasks"))
        (change,) = client.notices("notifications/tasks")
        assert (change["taskId"], change["status"]) == (task["taskId"], "completed")
        assert value(change["result"]) == {}
        client.cancel(listening)


@BOTH
async def test_a_modern_client_without_the_extension_gets_the_result_of_a_task_tool(
    tmp_path: Path, transport: str
) -> None:
    async with task_server(tmp_path, transport, era="legacy", tasks="required") as on:
        result = await on.modern().request("tools/call", plain())
        assert value(result) == {}
        assert result["resultType"] == "complete"
        able = on.modern(ABLE)
        assert value(await finished(able, plain(questions=[FORM]))) == {"q0": ACCEPTED}


async def test_a_modern_client_without_the_extension_calls_an_optional_tool_as_usual(tmp_path: Path) -> None:
    async with task_server(tmp_path, "stdio", **LEGACY) as on:
        assert value(await on.modern().request("tools/call", plain())) == {}
        assert "task" not in on.received("a", "tools/call")[0]["params"]


# -- handles
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_handles_work_after_a_restart_of_polyplex(tmp_path: Path, era: str) -> None:
    async with scripted_http(era=era, tasks="optional") as server:
        entries = {"a": {"url": server.url, "type": "http"}}
        async with stage(tmp_path, entries) as on:
            old = await start(await on.legacy(), polls=2)
            new = await start_modern(on.modern(DECLARED), polls=2)
        async with stage(tmp_path, entries) as on:
            client = await on.legacy()
            assert (await client.request("tasks/get", {"taskId": old["taskId"]}))["taskId"] == old["taskId"]
            assert value(await client.request("tasks/result", {"taskId": old["taskId"]})) == {}
            assert value((await ended(on.modern(DECLARED), new["taskId"]))["result"]) == {}
            listed = [task["taskId"] for task in (await client.request("tasks/list"))["tasks"]]
            assert listed == [old["taskId"], new["taskId"]]


async def test_held_results_survive_a_restart(tmp_path: Path) -> None:
    async with scripted_http(era="modern", tasks="optional", immediate=True) as server:
        entries = {"a": {"url": server.url, "type": "http"}}
        async with stage(tmp_path, entries) as on:
            task = await start(await on.legacy())
        async with stage(tmp_path, entries) as on:
            client = await on.legacy()
            assert value(await client.request("tasks/result", {"taskId": task["taskId"]})) == {}
            done = await on.modern(DECLARED).request("tasks/get", {"taskId": task["taskId"]})
            assert (done["status"], value(done["result"])) == ("completed", {})


async def test_handles_of_servers_that_are_gone_say_so(tmp_path: Path) -> None:
    async with scripted_http(era="modern", tasks="optional") as server:
        async with stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
            task = await start(await on.legacy())
        async with stage(tmp_path, {"b": {"url": server.url, "type": "http"}}) as on:
            with pytest.raises(RefusedError, match="-32602.*'a' is not configured"):
                await (await on.legacy()).request("tasks/get", {"taskId": task["taskId"]})


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_dying_server_ends_the_wait_for_its_task(tmp_path: Path, era: str) -> None:
    async with task_server(tmp_path, "stdio", era=era, needs=True, tasks="required") as on:
        client = await on.legacy()
        call = client.send("tools/call", plain(hold=True, poll=1))
        await eventually(lambda: on.received("a", "tasks/get") or on.received("a", "tasks/result"))
        client.begin("a__die")
        result = await client.response(call)
        assert result["isError"]
        assert "failed during the request" in text(result)
