"""A stored result outlives the `polyplex serve` that stored it, however that ends."""

import json
from pathlib import Path

from tests.process.children import gone
from tests.process.cli import DEADLINE_SECONDS, Home, read_until
from tests.process.test_parked_serve import address, call


async def test_a_payload_that_a_client_was_told_of_is_there_after_a_kill(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.configure({"one": home.good})
    text = "The quick brown fox. " * 10_000
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        url = address(read_until(process, "ready "))
        result = call(url, {"name": "one__echo", "arguments": {"text": text}})["result"]
        process.kill()
        process.wait(DEADLINE_SECONDS)
    await gone(*home.children())
    (link,) = [block for block in result["content"] if block["type"] == "resource_link"]
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        url = address(read_until(process, "ready "))
        params = {"uri": link["uri"], "_meta": {"polyplex/results": "raw"}}
        (contents,) = call(url, params, "resources/read")["result"]["contents"]
        assert json.loads(contents["text"]) == {"text": text}
        assert contents["_meta"]["polyplex/payload"]["sha256"] == link["_meta"]["polyplex/payload"]["sha256"]
