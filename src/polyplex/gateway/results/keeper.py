"""Payloads on behalf of the calls whose results they are: made, named, described."""

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from polyplex.config.model import PayloadOptions
from polyplex.content import kinds
from polyplex.content.preview import preview
from polyplex.errors import PayloadMissing
from polyplex.gateway.results.counting import count
from polyplex.store.payload import Payload, id_of
from polyplex.store.payload_store import PayloadStore
from polyplex.store.writer import PayloadWriter

META_PAYLOAD: Final = "polyplex/payload"
HEAD_BYTES: Final = 64 * 1024
PREVIEWED_BYTES: Final = 4 * 1024
MOST_PREVIEWED_BYTES: Final = 16 * 1024
ENOUGH_RECORDS: Final = 20
MOST_LINES: Final = 40
TAIL_BYTES: Final = 8 * 1024
JSON: Final = "application/json"


class Part(Struct, frozen=True):
    """A payload with its first and last bytes, which its preview is made of; the head is all where it is short.

    `shape` is the preview.
    """

    payload: Payload
    head: bytes
    tail: bytes
    shape: str

    @property
    def whole(self) -> bytes | None:
        """All of it, where that is at hand."""
        return self.head if len(self.head) == self.payload.size else None


class Keeper:
    """One for each gateway."""

    def __init__(self, options: PayloadOptions, store: PayloadStore) -> None:
        self._options = options
        self._store = store
        self._used = False

    @property
    def store(self) -> PayloadStore:
        """Where they are kept."""
        self._used = True
        return self._store

    async def close(self) -> None:
        """Wait for what is being written."""
        if self._used:
            await self._store.close()

    async def keep(self, owner: str, data: bytes, origin: str, declared: str | None, tokens: int) -> Part:
        """Make a payload of what is in memory, with a preview of so many tokens. Raises `PayloadError`."""
        kind = kinds.sniff(data[:PREVIEWED_BYTES], declared)
        putting = asyncio.get_running_loop().create_task(self.store.put(owner, data, kind, origin=origin))
        await asyncio.sleep(0)  # the disk works while the preview is made
        try:
            shape = shape_of(data, data[-TAIL_BYTES:], kind, len(data), tokens, count(data, kind) if tokens else None)
        finally:
            payload = await putting
        return Part(payload, data, data[-TAIL_BYTES:], shape)

    def writer(self, owner: str, origin: str) -> PayloadWriter:
        """Begin a payload whose media type is found out on the way."""
        return self.store.writer(owner, origin=origin)

    # -- names
    def uri_of(self, payload: Payload) -> str:
        """What clients are told: ours, or the bucket's own where that is configured."""
        if self._options.uri == "store":
            return self.store.external_uri(payload) or payload.uri
        return payload.uri

    def reference(self, uri: str) -> str | None:
        """The id in a URI that clients were told; None for any other URI or text."""
        if uri.startswith("polyplex:"):
            return id_of(uri)
        scheme, separator, rest = uri.partition("://")
        if not separator or self._options.uri != "store" or scheme not in ("s3", "gs", "az"):
            return None
        return id_of(rest.rpartition("/")[2])

    async def stat(self, owner: str, uri: str) -> Payload:
        """The payload behind such a URI. Raises `PayloadError`."""
        identifier = self.reference(uri)
        if identifier is None:
            raise PayloadMissing(f"{uri[:200]} is no payload URI; they look like polyplex://payload/...")
        payload = await self.store.stat(owner, identifier)
        if not uri.startswith("polyplex:") and self.store.external_uri(payload) != uri:
            raise PayloadMissing(f"{uri[:200]} is not in the payload store of this polyplex")
        return payload

    async def read(self, owner: str, payload: Payload, most: int) -> bytes:
        """The first `most` bytes of a payload. Raises `PayloadError`."""
        async with self.store.opened(owner, payload.id) as opened:
            return await self.store.in_thread(opened.source.read_at, 0, min(most, payload.size))

    def describe(self, payload: Payload, **more: Any) -> dict[str, Any]:
        """The value of `polyplex/payload`."""
        found: dict[str, Any] = {
            "uri": self.uri_of(payload),
            "size": payload.size,
            "mimeType": payload.media_type,
            "sha256": payload.sha256,
        }
        if payload.expires is not None:
            found["expires"] = datetime.fromtimestamp(payload.expires, UTC).isoformat(timespec="seconds")
        return found | more


def shape_of(head: bytes, tail: bytes, media_type: str, size: int, tokens: int, records: int | None) -> str:
    """The preview of a content; empty for no tokens."""
    if not tokens:
        return ""
    first = head[:PREVIEWED_BYTES]
    if max(first.count(b"\n"), first.count(b"{")) < ENOUGH_RECORDS:  # they are long: a few more make the better preview
        first = head[:MOST_PREVIEWED_BYTES]
    elif size > len(first):
        first = b"\n".join(first.split(b"\n", MOST_LINES + 1)[: MOST_LINES + 1])
    return preview(
        first,
        media_type,
        size,
        tail=tail[-PREVIEWED_BYTES:],
        max_tokens=tokens,
        records_total=records,
        sniffed=True,
    )
