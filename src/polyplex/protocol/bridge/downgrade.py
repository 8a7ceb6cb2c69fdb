"""Results for clients older than a feature in them: what the client does not know becomes what it does, or text.

Audio exists from 2025-03-26, `resource_link` and structured content from 2025-06-18. Legacy revisions want structured
content, and the output schema that describes it, to be an object; 2026-07-28 allows any value.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json
from polyplex.protocol.revisions import LEGACY, R2025_03_26, R2025_06_18, Era

WRAPPED: Final = "result"
_FIRST_BLOCKS: Final = frozenset({"text", "image", "resource"})
_STRUCTURED: Final = b'"structuredContent"'
_EMPTY: Final = Raw(b"[]")


class _Typed(msgspec.Struct):
    type: str = ""


class _Content(msgspec.Struct):
    content: list[_Typed] | UnsetType = UNSET


class _Message(msgspec.Struct):
    content: _Typed


class _Messages(msgspec.Struct):
    messages: list[_Message] | UnsetType = UNSET


_content_types = msgspec.json.Decoder(_Content).decode
_message_types = msgspec.json.Decoder(_Messages).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode = msgspec.json.decode


def applies(server: Era, era: Era, revision: str) -> bool:
    """True where results for a client of this era and revision may have to change at all."""
    return revision < R2025_06_18 or (server is not era and era is LEGACY)


def result_for(method: str, result: bytes, revision: str) -> bytes:
    """A result with content that the client's revision knows; the bytes that came where nothing has to change.

    Content that has no form there stays as text. What is no content at all is left as it is.
    """
    if method == "tools/call":
        return _blocks(_structured(result, revision), revision)
    if method == "prompts/get" and revision < R2025_06_18:
        return _messages(result, revision)
    return result


# -- content
def known_blocks(revision: str) -> frozenset[str]:
    """The types of content that tool results and prompts may have."""
    if revision >= R2025_06_18:
        return _FIRST_BLOCKS | {"audio", "resource_link"}
    return _FIRST_BLOCKS | {"audio"} if revision >= R2025_03_26 else _FIRST_BLOCKS


def _blocks(result: bytes, revision: str) -> bytes:
    if revision >= R2025_06_18:
        return result
    known = known_blocks(revision)
    try:
        types = _content_types(result).content
    except msgspec.DecodeError:
        return result
    if types is UNSET or all(each.type in known for each in types):
        return result
    fields = decode_fields(result)
    items = _decode_list(fields["content"])
    pairs = enumerate(zip(items, types, strict=True))
    fields["content"] = _list(item if kind.type in known else block_for(item, number) for number, (item, kind) in pairs)
    return encode_json(fields)


def _messages(result: bytes, revision: str) -> bytes:
    known = known_blocks(revision)
    try:
        types = _message_types(result).messages
    except msgspec.DecodeError:
        return result
    if types is UNSET or all(each.content.type in known for each in types):
        return result
    fields = decode_fields(result)
    messages = [decode_fields(item) for item in _decode_list(fields["messages"])]
    for number, (message, kind) in enumerate(zip(messages, types, strict=True)):
        if kind.content.type not in known:
            message["content"] = block_for(message["content"], number)
    fields["messages"] = _list(Raw(encode_json(message)) for message in messages)
    return encode_json(fields)


def _list(items: Iterable[bytes | Raw]) -> Raw:
    return Raw(b"[" + b",".join(bytes(item) for item in items) + b"]")


def block_for(block: Raw, number: int) -> Raw:
    """A block of a type the client does not know, as one that it does: audio as an embedded resource, all else as text.

    `number` tells the recordings of one result apart.
    """
    fields = decode_fields(block)
    kind = _plain(fields.get("type"))
    kept = {name: fields[name] for name in ("annotations", "_meta") if name in fields}
    if kind == "audio" and _is_text(fields.get("data")):
        contents = {"uri": Raw(b'"urn:polyplex:audio:%d"' % number), "blob": fields["data"]}
        if "mimeType" in fields:
            contents["mimeType"] = fields["mimeType"]
        return Raw(encode_json({"type": Raw(b'"resource"'), "resource": Raw(encode_json(contents))} | kept))
    text = link_text(fields) if kind == "resource_link" and "uri" in fields else bytes(block).decode("utf-8", "replace")
    return Raw(encode_json({"type": Raw(b'"text"'), "text": Raw(encode_json(text))} | kept))


def link_text(fields: Fields) -> str:
    """What a link to a resource says, for a client that has no links."""
    name = _plain(fields.get("title")) or _plain(fields.get("name")) or "resource"
    mime = _plain(fields.get("mimeType"))
    first = f"[{name}{f' ({mime})' if mime else ''}] {_plain(fields['uri'])}"
    return "\n".join(filter(None, (first, _plain(fields.get("description")))))


def _plain(raw: Raw | None) -> str:
    value = None if raw is None else _decode(raw)
    return value if isinstance(value, str) else ""


def _is_text(raw: Raw | None) -> bool:
    return raw is not None and bytes(memoryview(raw)[:1]) == b'"'


# -- structured content
def _structured(result: bytes, revision: str) -> bytes:
    """Structured content is an object from 2025-06-18 on, and before that it is there as text."""
    if _STRUCTURED not in result:
        return result
    fields = decode_fields(result)
    value = fields.get("structuredContent")
    if value is None:
        return result
    if bytes(memoryview(value)[:1]) == b"{":
        if revision >= R2025_06_18 or _has_text(fields):
            return result
    else:
        fields["structuredContent"] = Raw(encode_json({WRAPPED: value}))
    _say(fields, value)
    return encode_json(fields)


def _has_text(fields: Fields) -> bool:
    return any(_plain(decode_fields(block).get("type")) == "text" for block in _content(fields))


def _content(fields: Fields) -> list[Raw]:
    blocks = _decode_list(fields.get("content", _EMPTY))
    return [block for block in blocks if bytes(memoryview(block)[:1]) == b"{"]


def _say(fields: Fields, value: Raw) -> None:
    """Make sure that a text block carries a value, as servers should by themselves."""
    wanted = _decode(value)
    for block in _content(fields):
        text = _plain(decode_fields(block).get("text"))
        try:
            if text and _decode(text) == wanted:
                return
        except (msgspec.DecodeError, RecursionError):
            continue
    block = encode_json({"type": "text", "text": bytes(value).decode()})
    fields["content"] = _list([*_decode_list(fields.get("content", _EMPTY)), block])
