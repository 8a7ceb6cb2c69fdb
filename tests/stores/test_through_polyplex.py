"""A large result in each store, through polyplex: its URI, reading on, and handing it on as a URL."""

import json
import urllib.request
from pathlib import Path

from tests.interaction.stage import Json, stage
from tests.stores.servers import Server

CSV = "id,name\n" + "".join(f"{number},name {number}\n" for number in range(20_000))


async def test_a_result_is_handed_out_read_on_and_handed_on(place: Server, tmp_path: Path) -> None:
    bucket = not place.address.startswith("file:")
    options: Json = {"store": place.address, "storeOptions": place.options, "uri": "store"}
    tool: Json = {"echo": {"resolve": {"text": "url" if bucket else "content"}}}
    async with stage(
        tmp_path, {"a": {}}, results={}, expose="all", payloads=options, servers={"a": {"tools": tool}}
    ) as on:
        await on.up("a")
        client = await on.legacy()
        stored = await client.call("a__result", content=[{"type": "text", "text": CSV}])
        (link,) = [block for block in stored["content"] if block["type"] == "resource_link"]
        assert link["uri"].startswith(place.address.partition("://")[0] + "://" if bucket else "polyplex://payload/")
        page = await client.call("polyplex__read_payload", uri=link["uri"], lines="2-3")
        assert "0,name 0\n1,name 1" in page["content"][0]["text"]
        await client.call("a__echo", text=link["uri"])
        (asked,) = [each for each in on.received("a", "tools/call") if each["params"]["name"] == "echo"]
        handed: str = asked["params"]["arguments"]["text"]
        assert (handed if not bucket else _fetched(handed)) == CSV
        assert json.dumps(stored).count("name 19999") <= 1, "no more than the end of the text is shown"


def _fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return answer.read().decode()
