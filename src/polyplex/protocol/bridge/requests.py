"""Requests on their way to an upstream."""

from typing import Final

import msgspec
from msgspec import Raw

from polyplex.protocol import envelope
from polyplex.protocol.bridge.questions import RETRY_MEMBERS
from polyplex.protocol.headers import ParamHeader, encode_value, mirror
from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json
from polyplex.protocol.revisions import LEGACY, MODERN, R2025_06_18, R2025_11_25, Era

_FIRST: Final = {"elicitation": R2025_06_18, "tasks": R2025_11_25}


class ClientFacts(msgspec.Struct, frozen=True):
    """What a modern upstream is told of the client with each request; raw JSON but for the level."""

    capabilities: bytes
    info: bytes
    log_level: str | None


def known_capabilities(raw: bytes, revision: str) -> bytes:
    """A client's capabilities without those that its own revision does not have.

    Elicitation began with 2025-06-18; tasks are a capability of 2025-11-25 alone.
    """
    unknown = {name for name, first in _FIRST.items() if revision < first and b'"%b"' % name.encode() in raw}
    if not unknown:
        return raw
    return encode_json({name: value for name, value in decode_fields(raw).items() if name not in unknown})


def modern_capabilities(raw: bytes) -> bytes:
    """A legacy client's capabilities for a modern server, whose tasks are an extension of their own."""
    if b'"tasks"' not in raw:
        return raw
    return encode_json({name: value for name, value in decode_fields(raw).items() if name != "tasks"})


def completion_for(fields: Fields, revision: str) -> Fields:
    """The params of completion/complete; the other arguments are context from 2025-06-18 on."""
    if revision >= R2025_06_18 or "context" not in fields:
        return fields
    return {name: value for name, value in fields.items() if name != "context"}


def read_meta(fields: Fields) -> Fields:
    """The `_meta` of a request's params; anything but an object counts as none."""
    raw = fields.get("_meta")
    return decode_fields(raw) if raw is not None and bytes(raw)[:1] == b"{" else {}


def meta_for(meta: Fields, client: Era, upstream: Era, revision: str, facts: ClientFacts) -> Fields:
    """The `_meta` that the upstream's era wants: reserved keys stamped, stripped, or passed on as they are."""
    if upstream is LEGACY:
        return envelope.strip(meta) if client is MODERN else meta
    if client is MODERN:
        return meta
    return envelope.stamp(meta, revision, facts.capabilities, facts.info, facts.log_level)


def without_retry(fields: Fields) -> Fields:
    """Params without what only a modern server knows of: the answers to its questions, and its state."""
    if "inputResponses" not in fields and "requestState" not in fields:
        return fields
    return {key: value for key, value in fields.items() if key not in RETRY_MEMBERS}


def with_meta(fields: Fields, meta: Fields) -> Fields:
    """Params with this `_meta`, or without one where it is empty."""
    if meta:
        return fields | {"_meta": Raw(encode_json(meta))}
    return {key: value for key, value in fields.items() if key != "_meta"}


def mirrored_headers(
    method: str, name: str | None, params: tuple[ParamHeader, ...], arguments: Raw | None
) -> list[tuple[str, str]]:
    """The headers a modern upstream wants over HTTP, derived from what is sent, never copied from the client."""
    headers = [("Mcp-Method", method)]
    if name is not None:
        headers.append(("Mcp-Name", encode_value(name)))
    if params:
        headers += mirror(params, None if arguments is None else bytes(arguments))
    return headers
