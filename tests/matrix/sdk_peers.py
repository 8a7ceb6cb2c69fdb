"""Real SDKs on both sides of polyplex: each release of the official Python SDK speaks the revision of its day."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.matrix.peer.words import MODERN, R1, R2, R3, Json, since
from tests.matrix.stage import Front, Server

HERE = Path(__file__).parent / "sdk"
CLIENT_SECONDS = 90
START_SECONDS = 30
TOOLS = ["peer__add", "peer__ask_model", "peer__ask_roots", "peer__ask_user", "peer__steps"]
Pythons = Mapping[str, Path]


def pythons(old: Mapping[str, Path]) -> Pythons:
    """By revision, the interpreter of the environment in which its SDK is. `old` are those that are installed apart."""
    return {**old, MODERN: Path(sys.executable)}


def server_transports(revision: str) -> tuple[str, ...]:
    """What the release serves. The present one is kept to its own era by a check of headers, so over HTTP.

    The HTTP server of 1.9 answers 500 to everything once the first client has ended its session.
    """
    return {R1: ("stdio", "sse"), R2: ("stdio",), MODERN: ("http",)}.get(revision, ("stdio", "http"))


def client_transport(revision: str, server_transport: str) -> str:
    """How a client connects: over the network where the server does not, and the other way round."""
    if server_transport != "stdio":
        return "stdio"
    return "sse" if revision == R1 else "http"


@asynccontextmanager
async def sdk_server(folder: Path, revision: str, transport: str, python: Path) -> AsyncGenerator[Server]:
    """A server on the SDK of a revision."""
    script = HERE / ("new_server.py" if revision == MODERN else "old_server.py")
    name = {"http": "streamable-http"}.get(transport, transport)
    port = _free_port()
    command = [str(python), str(script), name, str(port)]
    record = folder / "violations.jsonl"
    if transport == "stdio":
        yield Server(revision, transport, {"command": command[0], "args": command[1:]}, record)
        return
    with (folder / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log)
    try:
        await _accepting(port, process)
        path = "sse" if transport == "sse" else "mcp"
        yield Server(revision, transport, {"type": transport, "url": f"http://127.0.0.1:{port}/{path}"}, record)
    finally:
        if process.returncode is None:
            process.kill()  # the old ones wait for ever for event streams to end
        await process.wait()


async def _accepting(port: int, process: asyncio.subprocess.Process) -> None:
    """Wait until a port can be connected to, which nobody tells of."""
    async with asyncio.timeout(START_SECONDS):
        while True:
            assert process.returncode is None, "the server ended"
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


async def run_client(made: Front, revision: str, transport: str, python: Path) -> Json:
    """What a client on the SDK of a revision saw."""
    script = HERE / ("new_client.py" if revision == MODERN else "old_client.py")
    return await said_by(str(python), str(script), transport, *way_to(made, revision, transport, "/usr/bin:/bin"))


def way_to(made: Front, revision: str, transport: str, path: str) -> list[str]:
    """What a client is told of polyplex: its address, or the command that starts it with an environment of its own."""
    if transport != "stdio":
        return [made.url.replace("/mcp", "/sse") if transport == "sse" else made.url]
    home = made.folder / f"home-{revision}"
    variables = (f"HOME={home}", f"XDG_STATE_HOME={home}", f"PATH={path}")
    command = ["/usr/bin/env", "-i", *variables, sys.executable, "-m", "polyplex", "serve", "--stdio"]
    return [*command, "--config", str(made.config)]


async def said_by(*command: str) -> Json:
    """What a client in a process of its own saw."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(CLIENT_SECONDS):
            said, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        said, errors = await process.communicate()
    lines = [line for line in said.splitlines() if line.startswith(b"SEEN ")]
    assert lines, errors.decode()[-2000:]
    return json.loads(lines[0].removeprefix(b"SEEN "))


def expected(client: str, server: str) -> dict[str, Any]:
    """What a client is to see of a server."""
    kind = "a new note" if server == MODERN else "an old note"
    seen: dict[str, Any] = {
        "revision": client,
        "tools": [TOOLS, "42"],
        "resources": [kind, "note of Ada"],
        "prompts": "Greet Ada",
        "completion": ["Ada", "Alan"],
        "sampling": "It said: Paris, it says",
        "roots": '["file:///sdk/root"]',
        "logging": ["done", "half way"],
    }
    if client in since(R3) and server in since(R3):
        seen |= {"structured": {"result": 3}, "elicitation": "Hello, Ada!"}
    return seen


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
