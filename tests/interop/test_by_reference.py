"""A large file goes from one tool of a real server to another without ever passing through the model."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyplex.content.tokens import best_tokenizer
from polyplex.gateway.multiplexer import Multiplexer

CSV = "id,name,amount\n" + "".join(f"{number},name {number},{number * 1.5}\n" for number in range(40_000))
MOST_TOKENS = 1000


class Transcript:
    """What the model of a host sees and writes: its calls, and of their results what hosts give to a model."""

    def __init__(self, multiplexer: Multiplexer) -> None:
        self._multiplexer = multiplexer
        self.text = ""

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool as the model does."""
        result = await self._multiplexer.call_tool(name, arguments)
        seen = [{key: value for key, value in block.items() if key != "_meta"} for block in result["content"]]
        shown = {"content": seen, "structuredContent": result.get("structuredContent")}
        self.text += f"{name} {json.dumps(arguments)}\n{json.dumps(shown, ensure_ascii=False)}\n"
        assert not result.get("isError"), seen
        return result


async def test_a_large_file_is_copied_by_reference(tmp_path: Path, node_peers: Mapping[str, Path]) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "orders.csv").write_text(CSV, encoding="utf-8")
    server = {"command": str(node_peers["node"]), "args": [str(node_peers["mcp-server-filesystem"]), str(shared)]}
    options = {
        "state": f"sqlite:{tmp_path / 'state.db'}",
        "servers": {"files": {"tools": {"write_file": {"resolve": {"content": "content"}}}}},
    }
    async with Multiplexer.from_config({"mcpServers": {"files": server}, "polyplex": options}) as multiplexer:
        await multiplexer.settled()
        model = Transcript(multiplexer)
        result = await model.call("files__read_text_file", path=str(shared / "orders.csv"))
        (link, *_) = [block for block in result["content"] if block["type"] == "resource_link"]
        found = await model.call("polyplex__read_payload", uri=link["uri"], grep="name 39999", limit=1)
        assert "39999,name 39999,59998.5" in found["content"][0]["text"]
        await model.call("files__write_file", path=str(shared / "copy.csv"), content=link["uri"])
    assert (shared / "copy.csv").read_text(encoding="utf-8") == CSV
    assert best_tokenizer().count(model.text) < MOST_TOKENS, model.text
