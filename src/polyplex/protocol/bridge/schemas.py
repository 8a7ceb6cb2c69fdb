"""Tools of modern servers for legacy clients: their schemas in the form that legacy revisions allow.

Up to 2025-11-25 an output schema describes an object, and each property of a schema is an object itself; 2026-07-28
takes JSON Schema as it is.
"""

from typing import Final

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError
from polyplex.protocol.bridge.downgrade import WRAPPED
from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json

_OUTPUT: Final = b'"outputSchema"'
_BOOLEANS: Final = (b"true", b"false")
_OBJECT: Final = Raw(b'"object"')
# What a schema within another no longer finds, or is no longer found by.
_ANCHORED: Final = (b'"$ref"', b'"$dynamicRef"', b'"$id"', b'"$anchor"', b'"$dynamicAnchor"')


def tool_for_legacy(raw: bytes) -> bytes:
    """A tool as listed, with schemas that legacy revisions allow; the bytes that came where they do already."""
    if _OUTPUT not in raw and not any(mark in raw for mark in _BOOLEANS):
        return raw
    fields = decode_fields(raw)
    try:
        changed = _mend(fields, "inputSchema") | _mend_output(fields)
    except (RemoteProtocolError, msgspec.DecodeError, RecursionError):
        return raw
    return encode_json(fields) if changed else raw


def _mend_output(fields: Fields) -> bool:
    """The schema of what is never an object is wrapped, as the content will be; of what may be one, left out."""
    raw = fields.get("outputSchema")
    kind = None if raw is None else decode_fields(raw).get("type")
    if raw is None or kind == _OBJECT:
        return _mend(fields, "outputSchema")
    if kind is None or b'"object"' in bytes(kind):
        del fields["outputSchema"]
    else:
        fields["outputSchema"] = _wrapped(raw)
    return True


def _mend(fields: Fields, name: str) -> bool:
    """Properties that are `true` or `false` as the objects that mean the same."""
    raw = fields.get(name)
    schema = {} if raw is None else decode_fields(raw)
    properties = schema.get("properties")
    if properties is None or bytes(properties)[:1] != b"{":
        return False
    members = decode_fields(properties)
    booleans = {key: value for key, value in members.items() if value in (Raw(b"true"), Raw(b"false"))}
    if not booleans:
        return False
    for key, value in booleans.items():
        members[key] = Raw(b"{}") if bytes(value) == b"true" else Raw(b'{"not":{}}')
    fields[name] = Raw(encode_json(schema | {"properties": Raw(encode_json(members))}))
    return True


def _wrapped(schema: Raw) -> Raw:
    """The schema of an object whose one member is what the schema describes, as the structured content is wrapped."""
    inner = Raw(b"{}") if any(mark in bytes(schema) for mark in _ANCHORED) else schema
    return Raw(encode_json({"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}))
