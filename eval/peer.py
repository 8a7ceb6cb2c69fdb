"""FastMCP's search of tools: its own BM25, over name, description and the parameters of the first level."""

from collections.abc import Sequence
from typing import Any

from eval.metrics import Ranker


def fastmcp_ranker(tools: Sequence[dict[str, Any]]) -> Ranker:
    """A ranker over tools with the names that a proxy of FastMCP gives them, `server_tool`."""
    from fastmcp.server.transforms.search.bm25 import _BM25Index  # pyright: ignore[reportPrivateUsage]

    index = _BM25Index()
    index.build([_text(tool) for tool in tools])
    keys = [tool["id"] for tool in tools]
    return lambda query, k: [keys[place] for place in index.query(query, k)]


def _text(tool: dict[str, Any]) -> str:
    """What FastMCP's `_extract_searchable_text` makes of a tool."""
    server = tool.get("server") or ""
    parts = [f"{server}_{tool['name']}" if server else tool["name"], tool.get("description") or ""]
    for name, value in ((tool.get("input_schema") or {}).get("properties") or {}).items():
        parts.append(name)
        if isinstance(value, dict) and value.get("description"):
            parts.append(str(value["description"]))
    return " ".join(part for part in parts if part)
