"""Opening a session in the era the server speaks (2026-07-28, "Versioning", and the legacy lifecycle).

A legacy client is best served by a legacy session and a modern one by a modern one, so the wanted era is tried first.
No single error code decides: whatever is not a usable answer means "the other era".
"""

import asyncio
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError, UpstreamUnavailable
from polyplex.protocol import envelope
from polyplex.protocol.jsonrpc import (
    UNSUPPORTED_REVISION,
    Fields,
    decode_error,
    decode_fields,
    decode_text,
    encode_json,
)
from polyplex.protocol.revisions import LATEST_LEGACY, LATEST_MODERN, LEGACY_REVISIONS, MODERN_REVISIONS, Era
from polyplex.upstreams.connection import Connection, Peer

PROBE_SECONDS: Final = 3.0


class Identity(msgspec.Struct, frozen=True):
    """What polyplex tells servers: raw JSON `info` of itself, and the raw capabilities of the clients it stands for."""

    info: bytes
    capabilities: bytes


class _Supported(msgspec.Struct):
    supported: list[str] = []


async def open_session(connection: Connection, identity: Identity, first: Era, timeout: float) -> Peer:
    """Negotiate era and revision within `timeout` seconds. Raises `UpstreamUnavailable` saying why it failed."""
    errors: list[str] = []
    order = (Era.MODERN, Era.LEGACY) if first is Era.MODERN else (Era.LEGACY, Era.MODERN)
    try:
        async with asyncio.timeout(timeout):
            for era in order:
                try:
                    peer = await (
                        _discover(connection, identity) if era is Era.MODERN else _initialize(connection, identity)
                    )
                except RpcError as error:
                    errors.append(f"{_opening(era)} answered {error.code}: {error.message}")
                except (UpstreamError, RemoteProtocolError) as error:
                    errors.append(f"{_opening(era)}: {getattr(error, 'message', error)}")
                    if not connection.open:
                        break
                else:
                    connection.peer = peer
                    return peer
    except TimeoutError:
        errors.append(f"no handshake within {timeout:g} s")
    raise UpstreamUnavailable(connection.server, "; ".join(dict.fromkeys(errors)))


def _opening(era: Era) -> str:
    return "server/discover" if era is Era.MODERN else "initialize"


async def _initialize(connection: Connection, identity: Identity) -> Peer:
    params = encode_json(
        {
            "protocolVersion": LATEST_LEGACY,
            "capabilities": Raw(identity.capabilities),
            "clientInfo": Raw(identity.info),
        }
    )
    result = await connection.request("initialize", params, timeout=0)
    revision = decode_text(result.get("protocolVersion", Raw(b"null")))
    if revision not in LEGACY_REVISIONS:
        raise RpcError(UNSUPPORTED_REVISION, f"the server wants revision {revision!r}, which polyplex does not speak")
    connection.transport.established(revision, stateful=True)
    connection.notify("notifications/initialized")
    return _peer(Era.LEGACY, revision, result, result.get("serverInfo"))


async def _discover(connection: Connection, identity: Identity) -> Peer:
    revision = LATEST_MODERN
    for _ in range(2):
        exchange = connection.start(
            "server/discover",
            encode_json({"_meta": envelope.stamp({}, revision, identity.capabilities, identity.info, None)}),
            timeout=PROBE_SECONDS,
            headers=[("MCP-Protocol-Version", revision), ("Mcp-Method", "server/discover")],
        )
        reply = await exchange.future
        if reply.error is None:
            result = decode_fields(reply.result or b"{}")
            supported = msgspec.json.decode(result.get("supportedVersions", Raw(b"[]")), type=list[str])
            if not set(supported) & set(MODERN_REVISIONS):
                raise RpcError(UNSUPPORTED_REVISION, f"the server speaks {supported} only")
            connection.transport.established(revision, stateful=False)
            meta = decode_fields(result["_meta"]) if "_meta" in result else {}
            return _peer(Era.MODERN, revision, result, meta.get(envelope.SERVER_INFO_KEY))
        error = decode_error(reply.error)
        offered = _offered(error.data) if error.code == UNSUPPORTED_REVISION else None
        if offered is None:
            raise RpcError(error.code, error.message)
        revision = offered
    raise RpcError(UNSUPPORTED_REVISION, "the server refuses the revisions it says it supports")


def _offered(data: object) -> str | None:
    try:
        supported = msgspec.json.decode(data, type=_Supported).supported  # pyright: ignore[reportArgumentType]
    except (msgspec.DecodeError, TypeError):
        return None
    common = [revision for revision in supported if revision in MODERN_REVISIONS]
    return max(common) if common else None


def _peer(era: Era, revision: str, result: Fields, info: Raw | None) -> Peer:
    raw = result.get("capabilities")
    capabilities = decode_fields(raw) if raw is not None and bytes(raw)[:1] == b"{" else {}
    text = result.get("instructions")
    instructions = decode_text(text) if text is not None and bytes(text)[:1] == b'"' else None
    return Peer(era, revision, capabilities, b"{}" if info is None else bytes(info), instructions)
