"""What a model is told in place of what it does not get: what there is, and the exact call that reads it."""

from typing import Final

from polyplex.content import kinds
from polyplex.content.notices import read_call
from polyplex.store.payload import Payload

_TABLES: Final = frozenset({"text/csv", "text/tab-separated-values", "application/jsonl", "application/x-ndjson"})


def ways(media_type: str) -> str:
    """The arguments that suit a type of content, besides `offset` and `limit`."""
    if media_type == "application/json":
        return '"json_path" (such as "$.items[0]"), "page", "grep"'
    if media_type in _TABLES:
        return '"page", "grep", "lines"'
    return '"lines", "grep", "page"'


def stored(uri: str, payload: Payload, shape: str, what: str = "") -> str:
    """In place of a content that was stored: its shape, then what it is and how to read it."""
    head = f"[{what or 'The result'} is stored, {payload.size:,} bytes of {payload.media_type}"
    digest = f"sha256 {payload.sha256[:16]}"
    if kinds.is_text(payload.media_type):
        how = f"Above is only its shape. Read it with {read_call(uri)} and {ways(payload.media_type)} or offset/limit"
    else:
        how = f"Get it with {read_call(uri)}"
    text = f"{head}, {digest}. {how}, or by resources/read.]"
    return f"{shape}\n\n{text}" if shape else text


def listed(uri: str, shown: int, total: int, what: str) -> str:
    """After the first of many items."""
    path = f"$[{shown}:{min(total, shown + 20)}]"
    return f"[cut: {shown:,} of {total:,} {what} shown; all are stored; read on with {read_call(uri, json_path=path)}]"


def structured(uri: str, payload: Payload) -> str:
    """Beside structured content that was moved out, where the texts say already what is in it."""
    return f"[structuredContent is stored, {payload.size:,} bytes of JSON; read it with {read_call(uri)}]"


def summarised(how: str, summary: str) -> str:
    """A summary that stands for what is not shown."""
    return f"[summary of the whole, {how}]\n{summary}\n[end of the summary]"
