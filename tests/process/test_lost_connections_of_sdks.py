"""The SDKs' own clients lose their connections to `polyplex serve` in mid-call, and lose nothing else."""

import asyncio
import json
from pathlib import Path

from tests.interaction.stage import eventually
from tests.process.cli import Home
from tests.process.cutting_proxy import Cut, cutting_proxy
from tests.process.http_stage import DEADLINE_SECONDS
from tests.process.stepping import journal, stdio_entry
from tests.process.test_lost_connections import LATEST, LosingClient, serving


class Driver:
    """Moves the long call on, by a client of its own."""

    def __init__(self, port: int, folder: Path) -> None:
        self._client = LosingClient(port, LATEST)
        self._folder = folder

    async def begin(self) -> None:
        """Wait until the call is there."""
        await self._client.begin_session()
        await eventually(lambda: any(each.get("params", {}).get("name") == "slow" for each in journal(self._folder)))

    async def step(self) -> None:
        await self._client.call("step")

    async def finish(self) -> None:
        await self._client.call("finish")


async def test_the_typescript_sdk(tmp_path: Path, node_peers: dict[str, Path]) -> None:
    """A step is lost within its event, then comes again and is lost after it: ten losses."""
    home = Home(tmp_path)
    cuts: list[Cut] = ["half", "whole", "half", "whole", "half", "whole", "half", "whole", "half", "whole"]
    script = Path(__file__).with_name("resuming_client.mjs")
    async with serving(home, stdio_entry(tmp_path)) as port, cutting_proxy(port, cuts) as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        command = (str(node_peers["node"]), str(script), str(node_peers["node_modules"]), url)
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            driver = Driver(port, tmp_path)
            await driver.begin()
            for number in range(5):
                await driver.step()
                await proxy.lost(2 * number + 2)
            await driver.finish()
            async with asyncio.timeout(2 * DEADLINE_SECONDS):
                said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert [json.loads(line) for line in said.splitlines()] == [1, 2, 3, 4, 5, "the end"]
    assert proxy.losses == 10


async def test_the_python_sdk(tmp_path: Path) -> None:
    """Once it is back on a stream, it takes up anew only what ends in good order, as when it is polled."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    home, got = Home(tmp_path), list[float]()

    async def took(progress: float, total: float | None, message: str | None) -> None:
        got.append(progress)

    cuts: list[Cut] = ["half"]
    cuts.extend("ended" for _ in range(9))
    async with serving(home, stdio_entry(tmp_path)) as port, cutting_proxy(port, cuts) as proxy:
        url = f"http://127.0.0.1:{proxy.port}/mcp"
        async with streamable_http_client(url) as (reads, writes), ClientSession(reads, writes) as session:
            await session.initialize()
            call = asyncio.create_task(session.call_tool("s__slow", {}, progress_callback=took))
            driver = Driver(port, tmp_path)
            await driver.begin()
            await driver.step()
            await proxy.lost(2)
            for number in range(3, 11):
                await driver.step()
                await proxy.lost(number)
            await driver.finish()
            async with asyncio.timeout(2 * DEADLINE_SECONDS):
                result = await call
    assert got == list(range(1, 10))
    assert result.content[0].text == "the end"  # pyright: ignore[reportAttributeAccessIssue]
    assert proxy.losses == 10
