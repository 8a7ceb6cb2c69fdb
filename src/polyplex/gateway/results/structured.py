"""Structured content that is too much: smaller and still valid, where the tool says what is valid."""

import asyncio
from typing import Any, Final

import msgspec

from polyplex.content.json_cut import json_border
from polyplex.content.shrink import Shrunk, shrink
from polyplex.gateway.results.keeper import Keeper, Part
from polyplex.gateway.results.limits import Limits
from polyplex.protocol.jsonrpc import decode_fields

MAX_SHRUNK_BYTES: Final = 8 * 1024 * 1024
BEGINNING_BYTES: Final = 1024 * 1024
IN_THREAD_BYTES: Final = 256 * 1024


class Structured:
    """For one result of a tool; `schema` is the raw output schema, None where the tool has none."""

    def __init__(self, keeper: Keeper, owner: str, schema: bytes | None) -> None:
        self._keeper, self._owner, self._schema = keeper, owner, schema

    async def smaller(self, part: Part, limits: Limits) -> Shrunk | None:
        """A smaller value that is valid all the same; None where it has to be moved out whole."""
        if self._schema is None:
            return None
        begun = part.payload.size > MAX_SHRUNK_BYTES
        most = BEGINNING_BYTES if begun else MAX_SHRUNK_BYTES
        whole = part.whole if part.whole and not begun else await self._keeper.read(self._owner, part.payload, most)
        most = limits.preview_tokens // 2 if part.payload.size > limits.inline else limits.tokens
        try:
            schema: dict[str, Any] = msgspec.json.decode(self._schema)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None  # JSON, but nothing that a validator could take
        if len(whole) < IN_THREAD_BYTES:
            return shrink(whole, schema, most)
        if begun:
            return await asyncio.to_thread(_of_beginning, whole, schema, most)
        return await asyncio.to_thread(shrink, whole, schema, most)


def _of_beginning(beginning: bytes, schema: dict[str, Any], max_tokens: int) -> Shrunk | None:
    """As `shrink`, for a value that is too large to be parsed: made of the first whole values in it."""
    text = beginning.decode("utf-8", "ignore")
    border = json_border(text, len(text) - 1)
    if border is None:
        return None
    made = shrink((text[: border.end] + border.closing).encode(), schema, max_tokens)
    if made is None:
        return None
    where = "" if border.key is None else "/" + border.key.replace("~", "~0").replace("/", "~1")
    return made if where in made.cut else Shrunk(made.raw, (*made.cut, where))


def output_schema(entry: bytes | None) -> bytes | None:
    """The output schema of a tool's entry."""
    if entry is None or b'"outputSchema"' not in entry:
        return None
    schema = decode_fields(entry).get("outputSchema")
    return None if schema is None or bytes(schema)[:1] != b"{" else bytes(schema)
