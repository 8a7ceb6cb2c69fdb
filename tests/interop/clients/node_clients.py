"""The TypeScript SDK's client, 1.x and 2.x, driven over typescript.mjs; and the inspector's command line."""

import asyncio
import itertools
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from tests.interop.clients.interface import Era, Json, Kind, Notices, Target

DRIVER = Path(__file__).with_name("typescript.mjs")
ANSWER_SECONDS = 60
LINE_BYTES = 16 * 1024 * 1024
METHODS = {
    "tools": "tools/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
    "prompts": "prompts/list",
}


class ClientError(Exception):
    """The client reported an error; `str()` is what it said."""


class TypeScriptClient:
    """One node process with one connection."""

    def __init__(self, process: asyncio.subprocess.Process, era: Era) -> None:
        self.era: Era = era
        self.notices = Notices()
        self.filters_logs = True
        self.loses_last_progress = True
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {0: asyncio.get_running_loop().create_future()}

    async def read_lines(self) -> None:
        """Take in what the process says until it ends."""
        if self._process.stdout is None:
            return
        async for line in self._process.stdout:
            message: Json = json.loads(line)
            if "method" in message:
                self.notices.add(message["method"], message.get("params") or {})
            elif "error" in message:
                self._waiting.pop(message["id"]).set_exception(ClientError(message["error"]))
            else:
                self._waiting.pop(message["id"]).set_result(message.get("result"))
        for future in self._waiting.values():
            future.set_exception(ClientError("the client ended"))

    async def connected(self) -> None:
        """Wait for the handshake."""
        async with asyncio.timeout(ANSWER_SECONDS):
            await self._waiting[0]

    async def _do(self, action: str, *arguments: object) -> Any:
        if self._process.stdin is None:
            raise ClientError("the client has no input")
        identifier = next(self._ids)
        future = self._waiting[identifier] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": identifier, "do": action, "with": arguments})
        self._process.stdin.write(line.encode() + b"\n")
        await self._process.stdin.drain()
        async with asyncio.timeout(ANSWER_SECONDS):
            return await future

    async def listed(self, kind: Kind) -> list[Json]:
        return await self._do("list", kind)

    async def call(self, name: str, arguments: Json) -> Json:
        return await self._do("call", name, arguments)

    async def read(self, uri: str) -> Json:
        return await self._do("read", uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Json:
        return await self._do("prompt", name, arguments)

    async def complete(self, ref: Json, name: str, value: str) -> list[str]:
        return (await self._do("complete", ref, name, value))["completion"]["values"]

    async def progress(self, name: str, arguments: Json) -> list[Json]:
        return await self._do("progress", name, arguments)

    async def cancel(self, name: str, arguments: Json) -> None:
        assert await self._do("cancel", name, arguments) == "cancelled"

    async def level(self, level: Literal["warning", "info"]) -> None:
        await self._do("level", level)

    async def watch(self, uri: str) -> None:
        await self._do("watch", uri)


@asynccontextmanager
async def typescript(
    target: Target, era: Era, errors: Path, peers: Mapping[str, Path]
) -> AsyncGenerator[TypeScriptClient]:
    """Connect with the TypeScript SDK: 1.x for the legacy era, 2.x for the modern one."""
    where = json.dumps(target.command) if target.transport == "stdio" else target.url
    sdk = "1" if era == "legacy" else "2"
    with errors.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            *(str(peers["node"]), str(DRIVER), str(peers["node_modules"]), sdk, target.transport, where),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            limit=LINE_BYTES,
        )
    client = TypeScriptClient(process, era)
    reading = asyncio.get_running_loop().create_task(client.read_lines())
    try:
        await client.connected()
        yield client
    finally:
        if process.stdin is not None:
            process.stdin.close()
        await _ended(process)
        await reading


class InspectorClient:
    """@modelcontextprotocol/inspector's command line: a process and a connection for each request."""

    def __init__(self, target: Target, era: Era, errors: Path, peers: Mapping[str, Path]) -> None:
        self.era: Era = era
        self._errors = errors
        self._command = [str(peers["node"]), str(peers["mcp-inspector"]), "--cli"]
        if target.transport == "stdio":
            self._target = ["--", *target.command]
        else:
            self._target = ["--server-url", target.url, "--transport", target.transport]
        self._options = ["--protocol-era", era, "--format", "json", "--connect-timeout", str(ANSWER_SECONDS * 1000)]

    async def _run(self, method: str, *options: str) -> Any:
        with self._errors.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(*self._command, *self._options, "--method", method, *options, *self._target),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**os.environ, "HOME": str(self._errors.parent)},
            )
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                output, _ = await process.communicate()
        finally:
            await _ended(process)
        if process.returncode:
            raise ClientError(f"{method} exits with {process.returncode}: {output.decode()} (see {self._errors})")
        return json.loads(output)["result"]

    async def listed(self, kind: Kind) -> list[Json]:
        return (await self._run(METHODS[kind]))[kind]

    async def call(self, name: str, arguments: Json) -> Json:
        return await self._run("tools/call", "--tool-name", name, "--tool-args-json", json.dumps(arguments))

    async def read(self, uri: str) -> Json:
        return await self._run("resources/read", "--uri", uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Json:
        filled = [f"{key}={value}" for key, value in arguments.items()]
        return await self._run("prompts/get", "--prompt-name", name, *(["--prompt-args", *filled] if filled else []))


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a process that has been asked to end; kill it when it does not."""
    with suppress(TimeoutError):
        async with asyncio.timeout(ANSWER_SECONDS):
            await process.wait()
    if process.returncode is None:
        process.kill()
        await process.wait()
