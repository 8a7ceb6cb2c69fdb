"""polyplex as a client: a server's stream that breaks in mid-call is taken up again (2025-03-26 to 2025-11-25)."""

import asyncio
from pathlib import Path

import pytest

from polyplex import Multiplexer
from tests.process.conftest import LoopFactory
from tests.process.http_stage import DEADLINE_SECONDS, raw_server
from tests.process.stepping import PollingServer

RESUMABLE = ("2025-03-26", "2025-06-18", "2025-11-25")
LOSSES = 10


@pytest.mark.parametrize("revision", RESUMABLE)
@pytest.mark.parametrize("cut", [None, 0, 25, 90])
async def test_ten_losses_and_every_event_comes_once(
    loop_factory: LoopFactory, tmp_path: Path, revision: str, cut: int | None
) -> None:
    """`cut` bytes of every other event arrive before the connection breaks."""
    server = PollingServer(revision, cut)
    got: list[float] = []
    async with raw_server(server.serve) as raw:
        config = {"mcpServers": {"s": {"url": raw.url}}, "polyplex": {"state": f"sqlite:{tmp_path / 'state.db'}"}}
        async with Multiplexer.from_config(config) as mux, asyncio.timeout(DEADLINE_SECONDS):
            call = asyncio.create_task(mux.call_tool("s__slow", progress=lambda progress, *_: got.append(progress)))
            await server.begun.wait()
            for _ in range(LOSSES):
                await server.step()
            await server.finish()
            assert (await call)["content"][0]["text"] == "the end"
    assert got == list(range(1, LOSSES + 1))
    assert server.losses >= LOSSES
    assert server.calls == 1
