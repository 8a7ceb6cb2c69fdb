"""Tasks: of the core in 2025-11-25, an extension in 2026-07-28, and calls that wait for everybody else."""

import asyncio
import json

from tests.matrix.checks_asks import LIST_ROOTS
from tests.matrix.checks_basics import refused
from tests.matrix.client import ROOTS, Client
from tests.matrix.features import feature
from tests.matrix.peer.words import META, MODERN, TASKS_EXTENSION, Json
from tests.matrix.stage import Pair

TASKS = "Tasks"
LOOKS = 200
TTL = 60_000


async def create(client: Client, **arguments: object) -> str:
    """Call a tool that makes a task; the task's id."""
    params = client.call_params("job", None, dict(arguments))
    if not client.modern:
        params["task"] = {"ttl": TTL}
    result = await client.response(await client.send("tools/call", params))
    if client.modern:
        assert result["resultType"] == "task", result
    task: Json = result if client.modern else result["task"]
    assert task["status"] in ("working", "input_required")
    for name in ("ttlMs", "pollIntervalMs") if client.modern else ("ttl", "pollInterval"):
        assert name in task, task
    return task["taskId"]


async def look(client: Client, identifier: str, *statuses: str) -> Json:
    """Poll until the task has one of these statuses."""
    task: Json = {}
    for _ in range(LOOKS):
        task = await client.response(await client.send("tasks/get", {"taskId": identifier}))
        if task["status"] in statuses:
            return task
        await asyncio.sleep(0.01)  # a part of the protocol: nobody tells
    raise AssertionError(f"still {task['status']} after {LOOKS} looks")


def said(result: Json) -> Json:
    """What the job came to."""
    return json.loads(result["content"][0]["text"])


@feature(TASKS, "Tasks", "A call becomes a task that can be looked at until it is done, and its result fetched.")
async def tasks(pair: Pair) -> None:
    client = pair.client
    identifier = await create(client, key="k")
    task = await look(client, identifier, "completed")
    if client.modern:
        assert said(task["result"]) == {"job": "k", "answers": {}}
    else:
        result = await client.request("tasks/result", {"taskId": identifier})
        assert said(result) == {"job": "k", "answers": {}}
        assert result["_meta"][META + "related-task"] == {"taskId": identifier}
    error = await refused(client.request("tasks/get", {"taskId": "no such task"}))
    assert error.code == -32602


@feature(TASKS, "Input for tasks", "A task that needs input gets it, and goes on.")
async def task_input(pair: Pair) -> None:
    client = pair.client
    before = len(client.asked)
    identifier = await create(client, key="i", asks={"where": LIST_ROOTS})
    if client.modern:
        task = await look(client, identifier, "input_required")
        (key,) = task["inputRequests"]
        assert task["inputRequests"][key]["method"] == "roots/list"
        params = {"taskId": identifier, "inputResponses": {key: ROOTS}}
        await client.request("tasks/update", params)
        result = (await look(client, identifier, "completed"))["result"]
    else:
        result = await client.request("tasks/result", {"taskId": identifier})
        ((method, params, _),) = client.asked[before:]
        assert method == "roots/list"
        assert params["_meta"][META + "related-task"] == {"taskId": identifier}
    assert [answer["roots"] for answer in said(result)["answers"].values()] == [ROOTS["roots"]]


@feature(TASKS, "Cancelled tasks", "A task that is cancelled ends.")
async def task_cancel(pair: Pair) -> None:
    client = pair.client
    identifier = await create(client, key="c", endless=True)
    await client.request("tasks/cancel", {"taskId": identifier})
    assert (await look(client, identifier, "cancelled"))["status"] == "cancelled"


@feature(TASKS, "A list of tasks", "The tasks that there are can be listed.")
async def task_list(pair: Pair) -> None:
    client = pair.client
    identifier = await create(client, key="l")
    assert identifier in [task["taskId"] for task in await client.listed("tasks/list", "tasks")]
    await look(client, identifier, "completed")


async def needs_tasks(pair: Pair) -> None:
    """A client of the server's own era is told what it would have to declare."""
    if pair.server.revision == MODERN:
        client = pair.client
        capabilities, client.capabilities = client.capabilities, {}
        try:
            error = await refused(client.call("job", key="w"))
        finally:
            client.capabilities = capabilities
        assert (error.code, error.data) == (-32021, {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}})


@feature(
    TASKS,
    "A tool that needs tasks, called without",
    "The call waits until the task is done, and input is asked for.",
    absent=needs_tasks,
)
async def task_wait(pair: Pair) -> None:
    client = pair.client
    capabilities = client.capabilities
    if client.revision == MODERN:
        kept = {name: each for name, each in capabilities["extensions"].items() if name != TASKS_EXTENSION}
        client.capabilities = capabilities | {"extensions": kept}
    try:
        assert said(await client.call("job", key="w")) == {"job": "w", "answers": {}}
        answers = said(await client.call("job", key="a", asks={"where": LIST_ROOTS}))["answers"]
        assert answers["where"]["roots"] == ROOTS["roots"]
    finally:
        client.capabilities = capabilities
