"""Structured content that is too much: smaller and still valid, where the tool says what is valid."""

import asyncio
from typing import Any, Final

import msgspec

from polyplex.content.shrink import Shrunk, shrink
from polyplex.gateway.results.keeper import Keeper, Part
from polyplex.gateway.results.limits import Limits
from polyplex.protocol.jsonrpc import decode_fields

MAX_SHRUNK_BYTES: Final = 8 * 1024 * 1024
IN_THREAD_BYTES: Final = 256 * 1024


class Structured:
    """For one result of a tool; `schema` is the raw output schema, None where the tool has none."""

    def __init__(self, keeper: Keeper, owner: str, schema: bytes | None) -> None:
        self._keeper, self._owner, self._schema = keeper, owner, schema

    async def smaller(self, part: Part, limits: Limits) -> Shrunk | None:
        """A smaller value that is valid all the same; None where it has to be moved out whole."""
        if self._schema is None or part.payload.size > MAX_SHRUNK_BYTES:
            return None
        whole = part.whole or await self._keeper.read(self._owner, part.payload, MAX_SHRUNK_BYTES)
        most = limits.preview_tokens // 2 if part.payload.size > limits.inline else limits.tokens
        try:
            schema: dict[str, Any] = msgspec.json.decode(self._schema)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None  # JSON, but nothing that a validator could take
        if len(whole) < IN_THREAD_BYTES:
            return shrink(whole, schema, most)
        return await asyncio.to_thread(shrink, whole, schema, most)


def output_schema(entry: bytes | None) -> bytes | None:
    """The output schema of a tool's entry."""
    if entry is None or b'"outputSchema"' not in entry:
        return None
    schema = decode_fields(entry).get("outputSchema")
    return None if schema is None or bytes(schema)[:1] != b"{" else bytes(schema)
