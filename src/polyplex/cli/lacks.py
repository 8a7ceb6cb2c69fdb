"""What the configuration asks of this machine, beside its servers, and does not get: a payload store, an embedder."""

import asyncio
from typing import Final

import msgspec

from polyplex.config import SearchOptions
from polyplex.errors import MissingExtraError, PayloadError
from polyplex.gateway.app import Gateway

DOCTOR: Final = "doctor"


class Lack(msgspec.Struct, frozen=True):
    """A key of the configuration that does nothing, why, and what happens instead."""

    key: str
    reason: str
    instead: str


async def lacks_of(gateway: Gateway) -> list[Lack]:
    """Everything that is missing, found out by trying."""
    search = await asyncio.to_thread(embedder_lack, gateway.core.config.options.search)
    return [lack for lack in (await _store_lack(gateway), search) if lack is not None]


def embedder_lack(options: SearchOptions) -> Lack | None:
    """An embedder that is not installed."""
    if options.embedder != "minilm":
        return None
    from polyplex.embed.choice import open_embedder

    try:
        open_embedder("minilm")
    except MissingExtraError as error:
        return Lack("polyplex.search.embedder", str(error), "searches use static until then")
    return None


async def _store_lack(gateway: Gateway) -> Lack | None:
    """A payload store that keeps nothing: one small payload goes in and out."""
    results = gateway.core.results
    if results.off:
        return None
    try:
        payload = await results.keeper.store.put(DOCTOR, b"doctor", "text/plain", origin=DOCTOR)
        await results.keeper.store.delete(DOCTOR, payload.uri)
    except PayloadError as error:
        return Lack("polyplex.payloads.store", str(error), "large results stay whole until then")
    return None
