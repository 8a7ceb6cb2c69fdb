"""Real peers with tasks: the TypeScript SDK's core tasks on both sides, the extension on the Python SDK's server."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitResult

from tests.conformance.launch import await_tools, polyplex, server

pytestmark = [
    pytest.mark.peers,
    pytest.mark.timeout(180),
    pytest.mark.filterwarnings("ignore"),  # the SDKs' own deprecations are theirs
]
HERE = Path(__file__).resolve().parent
RELATED = "io.modelcontextprotocol/related-task"
CLIENT_SECONDS = 90


@asynccontextmanager
async def task_servers(folder: Path, node_peers: dict[str, Path]) -> AsyncGenerator[str]:
    """polyplex before the TypeScript SDK's example server, which has core tasks, and one with the extension."""
    everything = {"command": str(node_peers["node"]), "args": [str(node_peers["mcp-server-everything"])]}
    async with server("fixture_tasks.py", "--era", "modern", log=folder / "fixture.log") as fixture:
        servers = {"everything": everything, "fixture": {"url": fixture}}
        async with polyplex(servers, folder) as url:
            await await_tools(url, {"simulate-research-query", "slow_compute"})
            yield url


async def test_the_typescript_client_follows_tasks_of_either_kind(node_peers: dict[str, Path], tmp_path: Path) -> None:
    async with task_servers(tmp_path, node_peers) as url:
        report = await _typescript(node_peers, url)
    assert report["capabilities"] == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert report["support"]["simulate-research-query"] == report["support"]["slow_compute"] == "optional"
    assert report["support"]["echo"] is None
    research, compute, confirmed = report["research"], report["compute"], report["confirm"]
    assert re.search(r"# Research Report: python \(snake\)", research["text"])
    assert research["statuses"] == ["working", "input_required"]
    assert compute["text"] == "computed it in 0.3 s"
    assert confirmed["text"] == "deleted x"
    identifiers = [each["ids"] for each in (research, compute, confirmed)]
    assert [len(each) for each in identifiers] == [1, 1, 1]
    assert [each[RELATED]["taskId"] for each in report["elicited"]] == [identifiers[0][0], identifiers[2][0]]
    assert report["plain"]["isError"]
    assert report["plain"]["content"][0]["text"] == "the job failed"
    assert report["cancelled"] == {"status": "cancelled", "again": -32602}
    assert "[COMPLETED]" in report["sampled"]["content"][0]["text"]
    assert "said by a task" in report["sampled"]["content"][0]["text"]
    assert {each[0] for each in identifiers} <= set(report["listed"])


async def test_the_python_client_of_the_modern_era_waits_for_tasks_it_does_not_know(
    node_peers: dict[str, Path], tmp_path: Path
) -> None:
    async def elicited(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"interpretation": "comedy"})

    async with task_servers(tmp_path, node_peers) as url, Client(url, elicitation_callback=elicited) as client:
        result = await client.call_tool("simulate-research-query", {"topic": "python", "ambiguous": True})
    assert not result.is_error
    assert "# Research Report: python (comedy)" in str(result.content)


async def _typescript(node_peers: dict[str, Path], url: str) -> dict[str, Any]:
    script = HERE / "clients" / "typescript_tasks.mjs"
    process = await asyncio.create_subprocess_exec(
        str(node_peers["node"]),
        str(script),
        str(node_peers["node_modules"]),
        url,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said, errors = await asyncio.wait_for(process.communicate(), CLIENT_SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, errors.decode()
    report: dict[str, Any] = json.loads(said)
    return report
