"""Reading payloads: the tool for models, and `resources/read` for programs."""

import base64
from typing import Any, Final
from urllib.parse import urlencode

from polyplex.content import kinds
from polyplex.content.budget import weigh
from polyplex.content.preview import preview
from polyplex.content.tokens import estimate
from polyplex.downstream.session import Call
from polyplex.errors import PayloadError, PayloadMissing, PayloadQueryError, RpcError
from polyplex.gateway.client import Client
from polyplex.gateway.results.keeper import META_PAYLOAD, TAIL_BYTES, Keeper
from polyplex.gateway.results.limits import Limiter, Limits
from polyplex.gateway.results.queries import Answer, Answers, Query, read_query, told, uri_query
from polyplex.mux.router import Target
from polyplex.protocol.bridge import results
from polyplex.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    decode_fields,
    decode_text,
    encode_json,
)
from polyplex.protocol.revisions import MODERN, R2025_03_26
from polyplex.store.payload import Payload
from polyplex.store.reading.reader import DEFAULT_PART_BYTES, MAX_PART_BYTES, PayloadReader

TOOL_TOKENS: Final = 4000
MAX_MEDIA_BYTES: Final = 5 * 1024 * 1024
MAX_BINARY_BYTES: Final = 16 * 1024 * 1024
BINARY_PART_BYTES: Final = 3000
_REPLACED: Final = "\ufffd"
_BUILTIN: Final = Target("polyplex", "read_payload", None)


class Reading:
    """Answers for all callers; nobody reads what is another's."""

    def __init__(self, keeper: Keeper, limiter: Limiter) -> None:
        self._keeper, self._limiter = keeper, limiter
        self._made: PayloadReader | None = None

    @property
    def _reader(self) -> PayloadReader:
        if self._made is None:
            self._made = PayloadReader(self._keeper.store)
        return self._made

    # -- the tool
    async def tool(self, call: Call, client: Client, arguments: dict[str, Any]) -> bytes:
        """The result of `polyplex__read_payload`. Raises `PayloadError`."""
        uri = arguments.get("uri")
        if not isinstance(uri, str):
            raise PayloadQueryError('"uri" is missing: the polyplex://payload/... that a result gave')
        base, asked = uri_query(uri)
        query = read_query(asked | arguments)
        payload = await self._keeper.stat(client.binding.caller, base)
        if not kinds.is_text(payload.media_type):
            return await self._binary(call, client, payload, query)
        limits = self._limiter.usual
        tokens = min(limits.tokens, max(TOOL_TOKENS, query.limit or 0))
        answers = Answers(self._reader, client.binding.caller, payload.id, tokens, min(limits.inline, tokens * 8))
        return _text(told(await answers.answer(query), base))

    async def _binary(self, call: Call, client: Client, payload: Payload, query: Query) -> bytes:
        """A picture or a sound as such, where the model can take it; of anything else what it is, or some bytes."""
        owner, kind = client.binding.caller, payload.media_type.partition("/")[0]
        sound = kind == "audio" and call.session.revision >= R2025_03_26
        if query.plain and payload.size <= MAX_MEDIA_BYTES and (kind == "image" or sound):
            data = base64.b64encode(await self._keeper.read(owner, payload, MAX_MEDIA_BYTES)).decode()
            block = encode_json({"type": kind, "data": data, "mimeType": payload.media_type})
            if weigh(block).tokens <= self._limiter.usual.tokens:
                return b'{"content":[%b]}' % block
        if query.way != "text":
            raise PayloadQueryError(f"this payload is {payload.media_type}, no text; read it by offset and limit")
        limit = min(query.limit or BINARY_PART_BYTES, BINARY_PART_BYTES)
        part = await self._reader.bytes(owner, payload.id, offset=query.offset, limit=limit)
        if query.plain:
            tail = await self._reader.bytes(owner, payload.id, offset=-min(TAIL_BYTES, payload.size))
            shape = preview(part.data, payload.media_type, payload.size, tail=tail.data)
            return _text(f"{shape}\n[binary data: its bytes are read with offset and limit, as base64]")
        text = base64.b64encode(part.data).decode()
        onward = None if part.next_offset is None else query.given | {"offset": part.next_offset}
        answer = Answer(text, f"base64 of bytes {part.offset:,} to {part.end:,} of {part.size:,}", onward)
        return _text(told(answer, self._keeper.uri_of(payload)))

    # -- resources/read
    def serves(self, uri: str) -> bool:
        """True for the URI of a payload, with or without a range in it."""
        return uri.startswith("polyplex://payload/") or self._keeper.reference(uri_query(uri)[0]) is not None

    async def resource(self, call: Call, client: Client) -> bytes:
        """The result of `resources/read` for the URI of a payload. Raises `RpcError`."""
        fields = call.fields or decode_fields(call.params or b"{}")
        uri = decode_text(fields["uri"])
        try:
            contents = await self._contents(uri, client, self._limiter.of(call, client, _BUILTIN))
        except PayloadMissing as error:
            code = INVALID_PARAMS if call.session.era is MODERN else RESOURCE_NOT_FOUND
            raise RpcError(code, str(error), encode_json({"uri": uri})) from None
        except PayloadQueryError as error:
            raise RpcError(INVALID_PARAMS, str(error)) from None
        except PayloadError as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from None
        result = encode_json({"contents": contents})
        return results.finish("resources/read", decode_fields(result)) if call.session.era is MODERN else result

    async def _contents(self, uri: str, client: Client, limits: Limits | None) -> list[dict[str, Any]]:
        base, asked = uri_query(uri)
        query, owner = read_query(asked), client.binding.caller
        payload = await self._keeper.stat(owner, base)
        if not kinds.is_text(payload.media_type):
            return [await self._blob(uri, owner, payload, query)]
        whole = query.plain and payload.size <= (MAX_PART_BYTES if limits is None else limits.inline)
        if whole:
            data = await self._keeper.read(owner, payload, MAX_PART_BYTES)
            try:
                text = data.decode()
            except UnicodeDecodeError:
                return [await self._blob(uri, owner, payload, query)]
            if limits is None or estimate(text) <= limits.tokens:
                return [{"uri": uri, "mimeType": payload.media_type, "text": text, "_meta": self._meta(payload)}]
        ranged = query.limit is not None or limits is None  # then it is the reader who bounds it
        tokens = MAX_PART_BYTES if ranged or limits is None else limits.tokens
        most = MAX_PART_BYTES if ranged or limits is None else min(limits.inline, DEFAULT_PART_BYTES)
        answer = await Answers(self._reader, owner, payload.id, tokens, most).answer(query)
        if query.way == "text" and await self._has_replaced(answer.text, owner, payload, query.offset):
            return [await self._blob(uri, owner, payload, query)]
        meta = self._meta(payload, part=answer.notice)
        part: dict[str, Any] = {"uri": uri, "mimeType": payload.media_type, "text": answer.text, "_meta": meta}
        if answer.onward is None:
            return [part]
        onward = f"{base}?{urlencode(answer.onward)}"
        notice = f"[{answer.notice}; read on at {onward}]"
        return [part, {"uri": onward, "mimeType": "text/plain", "text": notice}]

    async def _has_replaced(self, text: str, owner: str, payload: Payload, offset: int) -> bool:
        """Whether a text is not what its bytes are: they may say that they are text, and be no UTF-8."""
        replaced = text.count(_REPLACED)
        if not replaced:
            return False
        limit = min(len(text.encode()) + len(_REPLACED.encode()), MAX_PART_BYTES)
        part = await self._reader.bytes(owner, payload.id, offset=offset, limit=limit)
        return part.data.count(_REPLACED.encode()) < replaced

    async def _blob(self, uri: str, owner: str, payload: Payload, query: Query) -> dict[str, Any]:
        if query.way != "text":
            raise PayloadQueryError(f"this payload is {payload.media_type}, no text; read it by offset and limit")
        if query.limit is None and payload.size - max(query.offset, 0) > MAX_BINARY_BYTES:
            raise PayloadQueryError(
                f"the payload has {payload.size:,} bytes of {payload.media_type}; read it in ranges, as "
                f"{self._keeper.uri_of(payload)}?offset=0&limit={MAX_BINARY_BYTES}"
            )
        limit = query.limit or MAX_BINARY_BYTES
        part = await self._reader.bytes(owner, payload.id, offset=query.offset, limit=limit)
        blob = base64.b64encode(part.data).decode()
        meta = self._meta(payload, range={"offset": part.offset, "end": part.end})
        return {"uri": uri, "mimeType": payload.media_type, "blob": blob, "_meta": meta}

    def _meta(self, payload: Payload, **more: Any) -> dict[str, Any]:
        return {META_PAYLOAD: self._keeper.describe(payload, **more)}


def _text(text: str) -> bytes:
    return encode_json({"content": [{"type": "text", "text": text}]})
