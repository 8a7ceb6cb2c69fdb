"""A tool's result as text: what it says, with a line for everything that is no text."""

from collections.abc import Mapping
from typing import Any, cast

import msgspec

from polyplex.cli.terminal import harmless


def as_text(result: Mapping[str, Any], *, for_terminal: bool) -> str:
    """The texts of a result, one under the other; structured content where there is no text.

    For a terminal without control characters; for a pipe exactly as they came.
    """
    blocks = cast("list[Mapping[str, Any]]", result.get("content") or [])
    parts = [_block(block) for block in blocks]
    if not parts and "structuredContent" in result:
        parts = [msgspec.json.format(msgspec.json.encode(result["structuredContent"]), indent=2).decode()]
    text = "\n".join(parts)
    return harmless(text) if for_terminal else text


def _block(block: Mapping[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio":
            size = len(str(block.get("data", ""))) * 3 // 4
            return f"[{block['type']}, {block.get('mimeType', 'unknown type')}, about {size:,} bytes; --json has it]"
        case "resource_link":
            return f"[resource {block.get('uri')}: {block.get('title') or block.get('name') or ''}]"
        case "resource":
            return _resource(cast("Mapping[str, Any]", block.get("resource") or {}))
        case _:
            return msgspec.json.encode(block).decode()


def _resource(resource: Mapping[str, Any]) -> str:
    if "text" in resource:
        return str(resource["text"])
    return f"[resource {resource.get('uri')}, {resource.get('mimeType', 'unknown type')}; --json has its bytes]"
