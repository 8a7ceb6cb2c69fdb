"""Tasks that clients run for servers (2025-11-25): a server asks for sampling as a task, then asks after it."""

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.stage import Client, Json, stage
from tests.interaction.tasks import RELATED

CAPABLE: Json = {
    "sampling": {},
    "elicitation": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}}},
}
SAID: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "ho"}}
PARAMS: Json = {"messages": [], "maxTokens": 5, "task": {"ttl": 1000}}
LEGACY: Json = {"era": "legacy", "tasks": "optional"}


def task(status: str = "working", identifier: str = "client-1") -> Json:
    return {
        "taskId": identifier, "status": status, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 1000,
    }  # fmt: skip


def running(client: Client) -> None:
    """Have the client run sampling requests as tasks."""
    client.answers |= {
        "sampling/createMessage": lambda params: {"task": task()} if "task" in params else SAID,
        "tasks/get": lambda params: task("completed", params["taskId"]),
        "tasks/result": lambda params: SAID | {"_meta": {RELATED: {"taskId": params["taskId"]}}},
        "tasks/cancel": lambda params: task("cancelled", params["taskId"]),
        "tasks/list": lambda params: {"tasks": [task(), task(identifier="somebody else's")]},
    }


async def run(client: Client, *then: str, **more: Any) -> list[Json]:
    """Have the server make a task of a sampling request, and then send `then`; what it was told."""
    return await client.value("a__run", method="sampling/createMessage", params=PARAMS, then=list(then), **more)


@pytest.mark.parametrize("times", [1, 2])
async def test_a_server_follows_a_task_of_its_client(tmp_path: Path, times: int) -> None:
    async with stage(tmp_path, {"a": LEGACY}) as on:
        client = await on.legacy(CAPABLE)
        running(client)
        for _ in range(times):
            told = await run(client, "tasks/get", "tasks/result", "tasks/cancel", "tasks/list")
            made, got, result, cancelled, listed = (each["result"] for each in told)
            identifier = made["task"]["taskId"]
            assert identifier != "client-1"
            assert got == task("completed", identifier)
            assert result == SAID | {"_meta": {RELATED: {"taskId": identifier}}}
            assert cancelled == task("cancelled", identifier)
            assert listed == {"tasks": [task("completed", identifier)]}, "only what this server asked for"
        assert client.asked("sampling/createMessage")[0]["params"] == PARAMS
        assert {each["params"]["taskId"] for each in client.asked("tasks/get")} == {"client-1"}


async def test_a_client_that_cannot_is_not_told_of_the_wish(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": LEGACY}) as on:
        client = await on.legacy({"sampling": {}})
        running(client)
        assert await run(client) == [{"result": SAID}]
        assert "task" not in client.asked("sampling/createMessage")[0]["params"]


async def test_servers_know_nothing_of_the_tasks_of_others(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": LEGACY, "b": LEGACY}) as on:
        client = await on.legacy(CAPABLE)
        running(client)
        identifier = (await run(client))[0]["result"]["task"]["taskId"]
        arguments: Json = {"method": "roots/list", "params": {}, "then": ["tasks/get", "tasks/list"], "id": identifier}
        _, got, listed = await client.value("b__run", **arguments)
        assert got["error"]["code"] == -32602
        assert listed["result"] == {"tasks": []}
        assert client.asked("tasks/get") == []


async def test_a_clients_notice_reaches_the_server_with_the_id_it_knows(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": LEGACY}) as on:
        client = await on.legacy(CAPABLE)
        running(client)
        identifier = (await run(client))[0]["result"]["task"]["taskId"]
        client.notify("notifications/tasks/status", task("completed"))
        client.notify("notifications/tasks/status", task("completed", "unknown"))
        await client.call("a__echo")
        (notice,) = on.received("a", "notifications/tasks/status")
        assert notice["params"] == task("completed", identifier)


async def test_the_capability_reaches_servers_from_clients_that_have_it(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": LEGACY}) as on:
        client = await on.legacy(CAPABLE)
        await client.call("a__echo")
        older = await on.legacy(CAPABLE, "2025-06-18")
        await older.call("a__echo")
        declared = [message["params"]["capabilities"] for message in on.received("a", "initialize")]
        assert [each.get("tasks") for each in declared if "sampling" in each] == [CAPABLE["tasks"], None]


async def test_a_modern_server_is_not_told_of_core_tasks(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        client = await on.legacy(CAPABLE)
        meta = (await client.value("a__echo"))["_meta"]
        assert set(meta["io.modelcontextprotocol/clientCapabilities"]) == {"sampling", "elicitation"}
