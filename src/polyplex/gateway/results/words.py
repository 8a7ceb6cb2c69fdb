"""What a model is told in place of what it does not get: what there is, and the exact call that reads it."""

from typing import Any, Final

from polyplex.protocol.jsonrpc import encode_json
from polyplex.store.payload import Payload

READ_TOOL: Final = "polyplex__read_payload"
_TABLES: Final = frozenset({"text/csv", "text/tab-separated-values", "application/jsonl", "application/x-ndjson"})


def read_call(uri: str, **arguments: Any) -> str:
    """A call of the reading tool as a model would make it."""
    return f"{READ_TOOL} {encode_json({'uri': uri} | arguments).decode()}"


def ways(media_type: str) -> str:
    """The arguments that suit a type of content, besides `offset` and `limit`."""
    if media_type == "application/json":
        return '"json_path" (such as "$.items[0]"), "page", "grep"'
    if media_type in _TABLES:
        return '"page", "grep", "lines"'
    return '"lines", "grep", "page"'


def is_readable(media_type: str) -> bool:
    """Whether a content is text that can be read in parts."""
    kind = media_type.partition(";")[0]
    return kind.startswith("text/") or kind.endswith(("json", "xml", "jsonl", "ndjson", "yaml", "javascript"))


def stored(uri: str, payload: Payload, shape: str, what: str = "") -> str:
    """In place of a content that was stored: its shape, then what it is and how to read it."""
    head = f"[{what or 'The result'} is stored, {payload.size:,} bytes of {payload.media_type}"
    digest = f"sha256 {payload.sha256[:16]}"
    if is_readable(payload.media_type):
        how = f"Above is only its shape. Read it with {read_call(uri)} and {ways(payload.media_type)} or offset/limit"
    else:
        how = f"Get it with {read_call(uri)}"
    text = f"{head}, {digest}. {how}, or by resources/read.]"
    return f"{shape}\n\n{text}" if shape else text


def cut(uri: str, first: int, last: int, total: int, *, records: str = "") -> str:
    """After a text that was cut."""
    shown = records or f"bytes {first:,}–{last:,} of {total:,}"
    return f"[cut: {shown} shown; read on with {read_call(uri, offset=last)}]"


def listed(uri: str, shown: int, total: int, what: str) -> str:
    """After the first of many items."""
    path = f"$[{shown}:{min(total, shown + 20)}]"
    return f"[cut: {shown:,} of {total:,} {what} shown; all are stored; read on with {read_call(uri, json_path=path)}]"


def structured(uri: str, payload: Payload, pointers: tuple[str, ...]) -> str:
    """Beside structured content that was made smaller, or moved out."""
    if pointers:
        where = ", ".join(pointers[:3]) + (", ..." if len(pointers) > 3 else "")
        return (
            f"[structuredContent is cut at {where or 'its root'}; whole it is {payload.size:,} bytes: {read_call(uri)}]"
        )
    return f"[structuredContent is stored, {payload.size:,} bytes of JSON; read it with {read_call(uri)}]"


def summarised(how: str, summary: str) -> str:
    """A summary that stands for what is not shown."""
    return f"[summary of the whole, {how}]\n{summary}\n[end of the summary]"
