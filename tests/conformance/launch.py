"""Starts the servers of a conformance run and polyplex before them, and ends them again."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import httpx2
from mcp_types.version import LATEST_MODERN_VERSION

HERE = Path(__file__).resolve().parent
TAPPED = HERE.parent / "wire" / "tapped.py"
START_SECONDS = 40
STOP_SECONDS = 10
POLL_SECONDS = 0.05
SHOWN_CHARACTERS = 2000


class StartError(Exception):
    """A process did not come up; `str()` says which and what it said."""


@contextlib.asynccontextmanager
async def running(
    command: list[str], log: Path, environment: Mapping[str, str]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """Run a command in a process group of its own; ends the whole group. stderr goes to `log`."""
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        try:
            yield process
        finally:
            await _end(process)


async def _end(process: asyncio.subprocess.Process) -> None:
    """SIGTERM to the process, and after a grace period SIGKILL to what is left of its group."""
    if process.returncode is None:
        process.terminate()
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


@contextlib.asynccontextmanager
async def server(script: str, *arguments: str, log: Path) -> AsyncGenerator[str]:
    """Run a server script of this folder; yields the URL that it prints when it accepts connections.

    Raises:
        StartError: it ended, or printed nothing in time.
    """
    command = [sys.executable, str(HERE / script), *arguments]
    async with running(command, log, {}) as process:
        if process.stdout is None:
            raise StartError(f"{script} has no output")
        try:
            line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        except TimeoutError as error:
            raise StartError(f"{script} is not up after {START_SECONDS} s; see {log}") from error
        if not line:
            raise StartError(f"{script} ended: {last_lines(log)}")
        yield line.decode().strip()


def polyplex_config(servers: Mapping[str, Mapping[str, Any]], state: Path) -> dict[str, Any]:
    """A config under which a gateway should be transparent: names as they are, everything exposed and trusted."""
    return {
        "mcpServers": dict(servers),
        "polyplex": {
            "naming": "bare",
            "expose": "all",
            "builtins": [],
            "guard": {"pins": "off"},
            "servers": {name: {"trust": "trusted"} for name in servers},
            "results": {"mode": "raw"},
            "state": f"sqlite:{state / 'state.db'}",
        },
    }


def write_config(servers: Mapping[str, Mapping[str, Any]], folder: Path) -> Path:
    """Write `polyplex_config` into `folder`, made when missing."""
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "config.json"
    config.write_text(json.dumps(polyplex_config(servers, folder), indent=2), encoding="utf-8")
    return config


@contextlib.asynccontextmanager
async def polyplex(servers: Mapping[str, Mapping[str, Any]], folder: Path) -> AsyncGenerator[str]:
    """Run `polyplex serve` before the given servers; yields its /mcp URL once it is ready.

    Config, state, log and what its messages have wrong (wire.jsonl) are kept in `folder`.

    Raises:
        StartError: it ended, or was not ready in time.
    """
    config = write_config(servers, folder)
    address = f"127.0.0.1:{free_port()}"
    tapped = [str(TAPPED), str(folder / "wire.jsonl")]
    command = [sys.executable, *tapped, "serve", "--config", str(config), "--http", address]
    log = folder / "polyplex.log"
    async with running(command, log, {"HOME": str(folder), "XDG_STATE_HOME": str(folder)}) as process:
        await _await_ready(f"http://{address}/readyz", process, log)
        yield f"http://{address}/mcp"


async def _await_ready(url: str, process: asyncio.subprocess.Process, log: Path) -> None:
    async with httpx2.AsyncClient(trust_env=False) as client:
        try:
            async with asyncio.timeout(START_SECONDS):
                while not await _answers(client, url):
                    if process.returncode is not None:
                        raise StartError(f"polyplex ended: {last_lines(log)}")
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise StartError(f"{url} did not answer 200 in {START_SECONDS} s: {last_lines(log)}") from error


async def _answers(client: httpx2.AsyncClient, url: str) -> bool:
    try:
        response = await client.get(url, timeout=2)
    except httpx2.TransportError:
        return False
    return response.is_success


async def await_tools(url: str, names: set[str]) -> None:
    """Wait until a gateway lists tools of these names, so that no server of a run is still joining.

    Raises:
        StartError: they are not listed in time.
    """
    missing = names
    async with httpx2.AsyncClient(trust_env=False) as client:
        try:
            async with asyncio.timeout(START_SECONDS):
                while missing:
                    missing = names - await _listed_tools(client, url)
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise StartError(f"{url} does not list {', '.join(sorted(missing))} after {START_SECONDS} s") from error


async def _listed_tools(client: httpx2.AsyncClient, url: str) -> set[str]:
    meta = {
        "io.modelcontextprotocol/protocolVersion": LATEST_MODERN_VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "conformance-gate", "version": "1.0.0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": "list", "method": "tools/list", "params": {"_meta": meta}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LATEST_MODERN_VERSION,
        "Mcp-Method": "tools/list",
    }
    response = await client.post(url, json=body, headers=headers, timeout=START_SECONDS)
    lines = [line.removeprefix("data:") for line in response.text.splitlines() if line.startswith(("{", "data:"))]
    answers: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    return {tool["name"] for answer in answers for tool in answer.get("result", {}).get("tools", [])}


def last_lines(log: Path) -> str:
    """The end of a log."""
    return log.read_text(errors="replace")[-SHOWN_CHARACTERS:]


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
