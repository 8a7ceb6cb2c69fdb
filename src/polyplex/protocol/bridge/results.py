"""Results on their way to a client, in the shape its era wants (PROTOCOL: resultType, ttl)."""

from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from polyplex.protocol import envelope
from polyplex.protocol.jsonrpc import (
    Fields,
    decode_fields,
    encode_json,
)
from polyplex.protocol.revisions import CACHEABLE_METHODS, MODERN, Era

_COMPLETE: Final = Raw(b'"complete"')
_MODERN_MEMBERS: Final = ("resultType", "ttlMs", "cacheScope")
_USUAL_START: Final = b'{"content":['
DEFAULT_TTL_MS: Final = 0


def tool_failure(text: str, era: Era) -> bytes:
    """The result of a tool that failed, so that the model can act on it."""
    result: dict[str, object] = {"content": [{"type": "text", "text": text}], "isError": True}
    if era is MODERN:
        result = {"resultType": "complete"} | result
    return encode_json(result)


class _Content(msgspec.Struct):
    content: Raw | UnsetType = UNSET
    isError: Raw | UnsetType = UNSET
    structuredContent: Raw | UnsetType = UNSET
    resultType: Raw | UnsetType = UNSET


_decode_content = msgspec.json.Decoder(_Content).decode


def result_for(method: str, result: bytes, upstream: Era, client: Era) -> bytes:
    """A result in the shape of the client's era; the bytes that came where nothing has to change."""
    if method == "tools/call":
        result = mend_tool_result(result)
    if upstream is client:
        return result
    return finish(method, decode_fields(result)) if client is MODERN else strip(decode_fields(result))


def mend_tool_result(result: bytes) -> bytes:
    """A tool result whose `content` is a list, as every client expects; null members are dropped."""
    if result.startswith(_USUAL_START) and b'"isError":null' not in result[-256:]:
        return result
    content = _decode_content(result)
    if content.resultType is not UNSET and _beginning(content.resultType) != b'"complete"':
        return result
    usable = content.content is not UNSET and _beginning(content.content).startswith(b"[")
    nulls = [name for name in ("isError", "structuredContent") if _is_null(getattr(content, name))]
    if usable and not nulls:
        return result
    fields = {key: value for key, value in decode_fields(result).items() if key not in nulls}
    return encode_json(fields if usable else fields | {"content": Raw(b"[]")})


def _is_null(value: Raw | UnsetType) -> bool:
    return value is not UNSET and _beginning(value) == b"null"


def _beginning(value: Raw) -> bytes:
    """The first bytes of a member that may be large: `bytes` of it would be a copy of all."""
    return bytes(memoryview(value)[:16])


def finish(method: str, fields: Fields, ttl_ms: int = DEFAULT_TTL_MS, scope: str = "private") -> bytes:
    """A complete modern result: `resultType`, and for cacheable methods `ttlMs` and `cacheScope`."""
    finished = {"resultType": _COMPLETE} | fields
    if method in CACHEABLE_METHODS:
        finished.setdefault("ttlMs", Raw(b"%d" % ttl_ms))
        finished.setdefault("cacheScope", Raw(encode_json(scope)))
    return encode_json(finished)


def strip(fields: Fields) -> bytes:
    """A legacy result: without the members and reserved keys of the modern era."""
    kept = {key: value for key, value in fields.items() if key not in _MODERN_MEMBERS}
    meta = kept.get("_meta")
    if meta is not None and envelope.SERVER_INFO_KEY.encode() in bytes(meta):
        inner = {key: value for key, value in decode_fields(meta).items() if key != envelope.SERVER_INFO_KEY}
        if inner:
            kept["_meta"] = Raw(encode_json(inner))
        else:
            del kept["_meta"]
    return encode_json(kept)
