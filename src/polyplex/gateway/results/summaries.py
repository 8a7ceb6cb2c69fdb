"""Summaries that stand for what is not shown: made here from the text, or by the client's own model."""

import asyncio
import logging
from typing import Final

from polyplex.content import kinds, summary
from polyplex.downstream.session import Call
from polyplex.errors import PayloadError, RpcError
from polyplex.gateway.client import Client
from polyplex.gateway.results.keeper import Keeper, Part
from polyplex.gateway.results.limits import Limits
from polyplex.protocol.jsonrpc import encode_json
from polyplex.protocol.revisions import LEGACY

log = logging.getLogger("polyplex.gateway")
ASK_SECONDS: Final = 60.0
MAX_READ_BYTES: Final = 1024 * 1024
LEAST_TOKENS: Final = 20


class Summaries:
    """For the result of one call."""

    def __init__(self, keeper: Keeper, call: Call, client: Client, limits: Limits) -> None:
        self._keeper, self._call, self._client, self._limits = keeper, call, client, limits

    async def of(self, owner: str, part: Part, max_tokens: int) -> tuple[str, str] | None:
        """A summary and who made it; None where none is wanted, or the content is no text."""
        wanted, payload = self._limits.summary, part.payload
        if wanted == "none" or max_tokens < LEAST_TOKENS or not kinds.is_text(payload.media_type):
            return None
        data = part.whole
        if data is None:
            try:
                data = await self._keeper.read(owner, payload, MAX_READ_BYTES)
            except PayloadError as error:
                log.info("a stored result could not be read for its summary: %s", error)
                data = part.head
        text = data[:MAX_READ_BYTES].decode("utf-8", "ignore")
        what = "made from its text" if len(data) >= payload.size else f"made from its first {len(text):,} characters"
        if wanted == "client":
            written = await self._ask(text, max_tokens)
            if written is not None:
                return "written by your client's model", written
        made = await asyncio.to_thread(summary.extractive, text, max_tokens, media_type=payload.media_type)
        return (what, made) if made else None

    async def _ask(self, text: str, max_tokens: int) -> str | None:
        """What the client's model writes; None where it cannot be asked, refuses, or takes too long.

        Only legacy clients are asked: a modern one would have to call again for every summary.
        """
        session = self._call.session
        if session.era is not LEGACY or not self._client.can("sampling"):
            return None
        params = summary.sampling_request(text, self._limits.focus, max_tokens)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                reply = await session.ask("sampling/createMessage", encode_json(params), self._call.send)
        except (TimeoutError, RpcError) as error:
            log.info("the client's model wrote no summary: %s", str(error) or "it took too long")
            return None
        return None if reply.result is None else summary.sampling_answer(reply.result)
