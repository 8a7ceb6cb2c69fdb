"""What tests of tasks share: a server that makes them behind either transport, and clients' ways of following one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import DEADLINE_SECONDS, Client, Json, Stage, stage

EXTENSION = "io.modelcontextprotocol/tasks"
RELATED = "io.modelcontextprotocol/related-task"
DECLARED: Json = {"extensions": {EXTENSION: {}}}
SCHEMA: Json = {"type": "object", "properties": {"name": {"type": "string"}}}
FORM: Json = {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": SCHEMA}}
ABLE: Json = {"elicitation": {}, "sampling": {}}
ACCEPTED: Json = {"action": "accept", "content": {"name": "Ada"}}
TERMINAL = ("completed", "failed", "cancelled")


@asynccontextmanager
async def task_server(folder: Path, transport: str, /, **settings: Any) -> AsyncGenerator[Stage]:
    """A gateway before one server, `a`."""
    settings = {"tasks": "optional"} | settings
    if transport == "stdio":
        async with stage(folder, {"a": settings}) as on:
            yield on
    else:
        async with scripted_http(**settings) as server, stage(folder, {"a": {"url": server.url, "type": "http"}}) as on:
            yield on


def job(ttl: int | None = 60000, **arguments: Any) -> Json:
    """Params of a call of `job` as a task of 2025-11-25."""
    return {"name": "a__job", "arguments": arguments, "task": {} if ttl is None else {"ttl": ttl}}


def plain(**arguments: Any) -> Json:
    """Params of a call of `job` by a client that asks for nothing."""
    return {"name": "a__job", "arguments": arguments}


async def start(client: Client, **arguments: Any) -> Json:
    """Have a legacy client make a task; the task."""
    result = await client.request("tools/call", job(**arguments))
    assert set(result) <= {"task", "_meta"}, result
    return result["task"]


async def start_modern(client: Client, **arguments: Any) -> Json:
    """Have a modern client make a task; the task."""
    result = await client.request("tools/call", plain(**arguments))
    assert result["resultType"] == "task", result
    return result


async def ended(client: Client, identifier: str) -> Json:
    """Poll a task to its end."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            task = await client.request("tasks/get", {"taskId": identifier})
            if task["status"] in TERMINAL:
                return task
            await asyncio.sleep(0.01)


async def asking(client: Client, identifier: str, number: int = 1) -> Json:
    """Poll a task of a modern client until it asks this many questions."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            task = await client.request("tasks/get", {"taskId": identifier})
            if task["status"] == "input_required":
                assert task["inputRequests"], task
                if len(task["inputRequests"]) == number:
                    return task
            else:
                assert task["status"] == "working", task
            await asyncio.sleep(0.01)
