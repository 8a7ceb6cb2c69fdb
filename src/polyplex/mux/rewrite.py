"""URIs inside results: resource links, embedded resources, read contents and app links get their public form.

Results without any such member leave as the bytes that came.
"""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError
from polyplex.mux.entries import Naming, rename_ui
from polyplex.protocol.jsonrpc import Fields, decode_fields, decode_text, encode_json

_decode_list = msgspec.json.Decoder(list[Raw]).decode
_Change = Callable[[bytes, Naming], bytes]


def rewrite_result(method: str, result: bytes, naming: Naming) -> bytes:
    """The result of a routed method with public URIs. Raises `RemoteProtocolError` where its shape forbids it."""
    if not naming.prefix:
        return result
    if method == "resources/read":
        return _each(result, "contents", _content_uri, naming)
    if method == "prompts/get" and _MARK in result:
        return _each(result, "messages", _message, naming)
    if method == "tools/call" and (_MARK in result or _UI_MARK in result):
        return _tool_result(result, naming)
    return result


_MARK: Final = b'"resource'
_UI_MARK: Final = b"esourceUri"


def _each(result: bytes, member: str, change: _Change, naming: Naming) -> bytes:
    fields = decode_fields(result)
    raw = fields.get(member)
    if raw is None or bytes(raw)[:1] != b"[":
        return result
    items = _items(raw)
    changed = [change(item, naming) for item in items]
    if changed == items:
        return result
    fields[member] = Raw(b"[" + b",".join(changed) + b"]")
    return encode_json(fields)


def _items(raw: Raw) -> list[bytes]:
    try:
        return [bytes(item) for item in _decode_list(raw)]
    except (msgspec.DecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"expected a list: {error}") from None


def _tool_result(result: bytes, naming: Naming) -> bytes:
    result = _each(result, "content", _block, naming)
    if _UI_MARK not in result:
        return result
    fields = decode_fields(result)
    meta = fields.get("_meta")
    if meta is None or bytes(meta)[:1] != b"{":
        return result
    inner = decode_fields(meta)
    if not rename_ui(inner, naming):
        return result
    fields["_meta"] = Raw(encode_json(inner))
    return encode_json(fields)


def _message(item: bytes, naming: Naming) -> bytes:
    fields = decode_fields(item)
    content = fields.get("content")
    if content is None:
        return item
    raw = bytes(content)
    changed = _block(raw, naming) if raw[:1] == b"{" else raw
    return item if changed == raw else encode_json(fields | {"content": Raw(changed)})


def _block(item: bytes, naming: Naming) -> bytes:
    """A content block: `resource_link` has a URI, `resource` embeds contents that have one."""
    if item[:1] != b"{":
        return item
    fields = decode_fields(item)
    kind = bytes(fields.get("type", Raw(b"")))
    if kind == b'"resource_link"':
        return _with_uri(item, fields, naming)
    embedded = fields.get("resource")
    if kind != b'"resource"' or embedded is None:
        return item
    contents = bytes(embedded)
    changed = _content_uri(contents, naming)
    return item if changed == contents else encode_json(fields | {"resource": Raw(changed)})


def _content_uri(item: bytes, naming: Naming) -> bytes:
    return _with_uri(item, decode_fields(item), naming) if item[:1] == b"{" else item


def _with_uri(item: bytes, fields: Fields, naming: Naming) -> bytes:
    uri = fields.get("uri")
    if uri is None or bytes(uri)[:1] != b'"':
        return item
    return encode_json(fields | {"uri": Raw(encode_json(naming.uri(decode_text(uri))))})
