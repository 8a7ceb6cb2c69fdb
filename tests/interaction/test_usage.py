"""What results cost is counted for every tool call, whichever way it goes, and for nothing else."""

from pathlib import Path

import pytest

from polyplex.store.usage import ToolUsage, read_usage
from tests.interaction.stage import Json, RefusedError, stage

SERVER: Json = {"tools": [{"name": "echo", "description": "Says it again", "inputSchema": {"type": "object"}}]}
BOUNDED: Json = {"results": {"mode": "bounded"}, "payloads": {"inlineLimitBytes": 2000}}


def kept(folder: Path) -> dict[str, ToolUsage]:
    return {f"{each.server} {each.tool}": each for each in read_usage(folder / "state.db")}


async def test_calls_are_counted_by_the_servers_own_names_and_kept_at_the_end(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": SERVER}) as on:
        await on.up("a")
        legacy, modern = await on.legacy(), on.modern()
        for client in (legacy, modern):
            await client.request("tools/list")
            await client.call("a__echo", q="x")
        await legacy.call("polyplex__call_tool", name="a__echo", arguments={"q": "x"})
    counted = kept(tmp_path)
    assert counted["a echo"].counts.calls == 3
    assert counted["a echo"].counts.bytes > 3 * counted["a echo"].counts.tokens > 0
    assert counted["a echo"].counts.offloaded == 0
    assert set(counted) == {"a echo"}, "lists cost nothing, and what is called through a tool counts once"


async def test_what_is_offloaded_is_told_from_what_reaches_the_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": SERVER}, **BOUNDED) as on:
        await on.up("a")
        client = await on.legacy()
        await client.call("a__echo", q="a long text " * 2000)
    counts = kept(tmp_path)["a echo"].counts
    assert counts.bytes > 20_000
    assert counts.offloaded > 15_000
    assert counts.tokens < 2000


async def test_a_call_that_fails_before_any_result_is_not_counted(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": SERVER}) as on:
        await on.up("a")
        client = await on.legacy()
        with pytest.raises(RefusedError):
            await client.call("a__none")
    assert kept(tmp_path) == {}
