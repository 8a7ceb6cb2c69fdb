"""The modern per-request envelope: the reserved `_meta` keys of 2026-07-28 ("Overview", "_meta")."""

from typing import Final

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol.jsonrpc import (
    INVALID_PARAMS,
    UNSUPPORTED_REVISION,
    Fields,
    decode_fields,
    decode_text,
    encode_json,
)
from polyplex.protocol.revisions import MODERN_REVISIONS

PREFIX: Final = "io.modelcontextprotocol/"
REVISION_KEY: Final = PREFIX + "protocolVersion"
CAPABILITIES_KEY: Final = PREFIX + "clientCapabilities"
CLIENT_INFO_KEY: Final = PREFIX + "clientInfo"
LOG_LEVEL_KEY: Final = PREFIX + "logLevel"
SERVER_INFO_KEY: Final = PREFIX + "serverInfo"
SUBSCRIPTION_KEY: Final = PREFIX + "subscriptionId"
ENVELOPE_KEYS: Final = (REVISION_KEY, CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY)
_MARK: Final = b"io.modelcontextprotocol/protocolVersion"
_ESCAPED_MARK: Final = b"io.modelcontextprotocol\\/protocolVersion"

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Envelope(msgspec.Struct, frozen=True):
    """What a modern request says of its client."""

    revision: str
    capabilities: bytes
    client_info: bytes | None
    log_level: str | None


def is_modern(params: bytes | Raw) -> bool:
    """True where the `_meta` of raw params names a revision. Arguments that hold the same text are no sign of it."""
    if not is_marked(bytes(params)):
        return False
    try:
        return REVISION_KEY in decode_fields(decode_fields(params).get("_meta", Raw(b"{}")))
    except RemoteProtocolError:
        return False


def is_marked(frame: bytes) -> bool:
    """False for most frames that are not modern; a cheap test before any parsing."""
    return _MARK in frame or _ESCAPED_MARK in frame


def read_envelope(meta: Fields) -> Envelope:
    """Read the reserved keys.

    Raises `RpcError` -32602 where a required key is missing or malformed, -32022 for an unknown revision.
    """
    try:
        return _read_envelope(meta)
    except RemoteProtocolError as error:
        raise RpcError(INVALID_PARAMS, f"a reserved key of _meta is malformed: {error}") from None


def check_params(params: bytes | Raw) -> None:
    """Check the envelope in the raw params of a modern request. Raises `RpcError` as `read_envelope` does."""
    try:
        meta = decode_fields(decode_fields(params).get("_meta", Raw(b"{}")))
    except RemoteProtocolError as error:
        raise RpcError(error.code, str(error)) from None
    read_envelope(meta)


def check_revision(revision: str) -> None:
    """Raise `RpcError` -32022 naming those that are supported, where this one is not."""
    if revision not in MODERN_REVISIONS:
        data = {"supported": list(MODERN_REVISIONS), "requested": revision}
        raise RpcError(UNSUPPORTED_REVISION, f"protocol revision {revision!r} is not supported", encode_json(data))


def _read_envelope(meta: Fields) -> Envelope:
    raw_revision, raw_capabilities = meta.get(REVISION_KEY), meta.get(CAPABILITIES_KEY)
    if raw_revision is None:
        raise RpcError(INVALID_PARAMS, f"_meta lacks {REVISION_KEY}")
    revision = decode_text(raw_revision)
    check_revision(revision)
    if raw_capabilities is None:
        raise RpcError(INVALID_PARAMS, f"_meta lacks {CAPABILITIES_KEY}")
    decode_fields(raw_capabilities)
    level = meta.get(LOG_LEVEL_KEY)
    info = meta.get(CLIENT_INFO_KEY)
    text = None if level is None else decode_text(level)
    if text is not None and text not in LOG_LEVELS:
        raise RpcError(INVALID_PARAMS, f"unknown log level {text!r}; one of {', '.join(LOG_LEVELS)}")
    return Envelope(revision, bytes(raw_capabilities), None if info is None else bytes(info), text)


def log_level(params: bytes) -> str | None:
    """The log level that a modern request asks for; None where there is none that counts."""
    try:
        level = decode_fields(decode_fields(params)["_meta"]).get(LOG_LEVEL_KEY)
        text = None if level is None else decode_text(level)
    except (RemoteProtocolError, KeyError):
        return None
    return text if text in LOG_LEVELS else None


def stamp(meta: Fields, revision: str, capabilities: bytes, client_info: bytes, log_level: str | None) -> Fields:
    """`meta` with the reserved keys set for a modern upstream; other members stay as they are."""
    stamped = dict(meta)
    stamped[REVISION_KEY] = Raw(encode_json(revision))
    stamped[CAPABILITIES_KEY] = Raw(capabilities)
    stamped[CLIENT_INFO_KEY] = Raw(client_info)
    if log_level is not None:
        stamped[LOG_LEVEL_KEY] = Raw(encode_json(log_level))
    return stamped


def strip(meta: Fields) -> Fields:
    """`meta` without the reserved keys, for a legacy upstream."""
    return {key: value for key, value in meta.items() if key not in ENVELOPE_KEYS}
