"""H12: what a modern client is listed depends on nothing but its request; legacy clients are told of changes."""

from pathlib import Path

from tests.interaction.parked import ABLE, asking, finished
from tests.interaction.stage import stage


async def test_no_other_request_changes_a_list(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}, "b": {"era": "modern"}, "c": {}}) as on:
        await on.up("a", "b", "c")
        client, other = on.modern(ABLE), on.modern()
        before = await client.request("tools/list"), await other.request("tools/list")
        assert before[0]["tools"] == before[1]["tools"], "these servers list the same whatever a client can do"
        await finished(client, asking("elicitation/create"))
        await client.value("b__echo")
        legacy = await on.legacy(ABLE)
        await legacy.names()
        await client.request("tools/call", {"name": "a__pid", "arguments": {}, "_meta": {"polyplex/session": "h"}})
        assert (await client.request("tools/list"), await other.request("tools/list")) == before
        assert [tool["name"] for tool in before[0]["tools"]] == await legacy.names()


async def test_a_change_is_told_to_both_eras_and_seen_by_both(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        legacy, modern = await on.legacy(), on.modern()
        await legacy.names()
        stream = modern.send("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await modern.until(lambda: modern.notices("notifications/subscriptions/acknowledged"))
        entries = [{"name": "change", "inputSchema": {"type": "object"}}]
        await legacy.call("a__change", member="tools", entries=entries)
        for client in (legacy, modern):
            await client.until(lambda client=client: client.notices("notifications/tools/list_changed"))
            assert await client.names() == ["a__change"]
        modern.cancel(stream)
