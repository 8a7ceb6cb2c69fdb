"""527 tools of 70 servers behind one endpoint: what clients are listed, and how they find and call a tool."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

from polyplex.content.tokens import estimate
from tests.catalogue.server import read_tools
from tests.matrix.peer.words import MODERN, R1, REVISIONS, Json
from tests.matrix.sdk_peers import pythons, said_by, way_to
from tests.matrix.stage import Front, Server, serving

HERE = Path(__file__).parent
TOOLS = HERE.parent / "data" / "toolsearch" / "livemcpbench" / "tools.jsonl"
QUERY, NAME = "get the current price of a stock", "yahoo-finance__get_current_stock_price"
OWN = ["polyplex__find_tools", "polyplex__call_tool", "polyplex__read_payload"]
ARGUMENTS = {"symbol": "ACME"}
pytestmark = [pytest.mark.timeout(240)]


class Many(Front):
    """polyplex before all servers of the catalogue."""

    def __init__(self, folder: Path, address: str) -> None:
        super().__init__(folder, Server("", "", {}, folder))
        self._address = address

    def configure(self) -> None:
        """Write the configuration; `expose` and the budget are left as they are by default."""
        servers = {name: {"type": "http", "url": f"{self._address}/{quote(name)}"} for name in read_tools(TOOLS)}
        options: Json = {"state": f"sqlite:{self.folder / 'state.db'}", "firstListWaitSeconds": 60}
        self.config.write_text(json.dumps({"mcpServers": servers, "polyplex": options}))


@asynccontextmanager
async def catalogue(folder: Path) -> AsyncGenerator[Many]:
    """The servers, and polyplex that serves them over HTTP."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", str(HERE / "server.py"), str(TOOLS), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(30):
            address = (await process.stdout.readline()).decode().strip()
        made = Many(folder, address)
        async with serving(made):
            yield made
    finally:
        process.kill()
        await process.wait()


async def seen_by(made: Many, revision: str, transport: str, python: Path) -> Json:
    """What a client on the SDK of a revision saw."""
    script = (str(python), str(HERE / "sdk_client.py"), QUERY, json.dumps(ARGUMENTS), transport)
    return await said_by(*script, *way_to(made, revision, transport, os.environ["PATH"]))


@pytest.mark.peers
async def test_the_sdk_of_every_revision_finds_and_calls_a_tool_in_two_calls(
    tmp_path: Path, python_sdks: dict[str, Path]
) -> None:
    found = pythons(python_sdks)
    async with catalogue(tmp_path) as made:
        for revision in REVISIONS:
            for transport in ("stdio", "sse" if revision == R1 else "http"):
                seen = await seen_by(made, revision, transport, found[revision])
                assert seen["revision"] == revision
                assert seen["names"] == OWN
                assert estimate(seen["listed"]) < 2000
                assert seen["found"].splitlines()[1].startswith(f"{NAME}(symbol: string)"), seen["found"]
                called = json.loads(seen["called"])
                assert called == {"server": "yahoo-finance", "tool": "get_current_stock_price", "arguments": ARGUMENTS}


async def test_all_tools_cost_fifty_times_as_much(tmp_path: Path) -> None:
    async with catalogue(tmp_path) as made:
        client = await made.connect(MODERN, "http")
        short = (await client.request("tools/list", {}))["tools"]
        await client.close()
        config = json.loads(made.config.read_text())
        config["polyplex"]["expose"] = "all"
        made.config.write_text(json.dumps(config))
        other = await made.connect(MODERN, "stdio")
        whole = (await other.request("tools/list", {}))["tools"]
        await other.close()
    assert len([tool for tool in whole if tool["name"] not in OWN]) == 527
    assert 50 * estimate(json.dumps(short, ensure_ascii=False)) < estimate(json.dumps(whole, ensure_ascii=False))
