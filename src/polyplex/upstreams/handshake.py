"""Opening a session in the era the server speaks (2026-07-28, "Versioning", and the legacy lifecycle).

A legacy client is best served by a legacy session and a modern one by a modern one, so the wanted era is tried first.
No single error code decides: whatever is not a usable answer means "the other era".
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

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
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.connection import Connection, Peer

PROBE_SECONDS: Final = 3.0


_CARRIED: Final = (
    b'{"roots":{},"sampling":{},"elicitation":{"form":{},"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}'
)


class Identity(msgspec.Struct, frozen=True):
    """What polyplex tells servers: raw JSON `info` of itself, and the raw capabilities of the clients it stands for."""

    info: bytes
    capabilities: bytes

    def envelope(self, revision: str) -> Fields:
        """The `_meta` of our own requests to modern servers.

        It declares all that polyplex carries, so that lists are whole; each call declares what its own client can do.
        """
        return envelope.stamp({}, revision, _CARRIED, self.info, None)


class _Supported(msgspec.Struct):
    supported: list[str] = []


async def open_session(connection: Connection, identity: Identity, first: Era, seconds: float) -> Peer:
    """Negotiate era and revision within `seconds`. Raises `UpstreamUnavailable` saying why it failed."""
    attempts = {Era.MODERN: _discover, Era.LEGACY: _initialize}
    order = (Era.MODERN, Era.LEGACY) if first is Era.MODERN else (Era.LEGACY, Era.MODERN)
    errors: list[str] = []
    try:
        async with asyncio.timeout(seconds):
            peer = await _race([attempts[era](connection, identity) for era in order], first, connection, errors)
    except TimeoutError:
        said = f'; it printed "{connection.stray}" on stdout, which is no MCP message' if connection.stray else ""
        errors.append(f"no handshake within {seconds:g} s{said}")
        peer = None
    if peer is None:
        raise UpstreamUnavailable(connection.server, "; ".join(dict.fromkeys(errors)))
    connection.peer = peer
    connection.transport.established(peer.revision, stateful=peer.era is Era.LEGACY)
    if peer.era is Era.LEGACY:
        connection.notify("notifications/initialized")
    return peer


async def _race(
    attempts: list[Coroutine[Any, Any, Peer]], first: Era, connection: Connection, errors: list[str]
) -> Peer | None:
    """The second attempt begins when the first has failed, or when a probe stays without an answer.

    A probe is not taken back then: a server that is slow to start may have it in its pipe, and answer it first.
    """
    loop = asyncio.get_running_loop()
    waiting = list(attempts)
    running: set[asyncio.Task[Peer]] = set()
    try:
        while waiting or running:
            if waiting and connection.open:
                attempt = loop.create_task(waiting.pop(0))
                attempt.add_done_callback(_lost_race)
                running.add(attempt)
            elif not running:
                break
            patience = PROBE_SECONDS if first is Era.MODERN and waiting else None
            done, running = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                try:
                    return task.result()
                except RpcError as error:
                    errors.append(f"{error.code}: {error.message}")
                except UpstreamError as error:
                    errors.append(error.message)
                except (RemoteProtocolError, msgspec.DecodeError) as error:
                    errors.append(f"its answer is not usable: {error}")
        return None
    finally:
        for task in running:
            task.cancel()
        for unused in waiting:
            unused.close()


def _lost_race(task: asyncio.Task[Peer]) -> None:
    """How the slower attempt ends is of no interest, but asyncio wants it to have been looked at."""
    if not task.cancelled():
        task.exception()


async def _initialize(connection: Connection, identity: Identity) -> Peer:
    params = encode_json(
        {
            "protocolVersion": LATEST_LEGACY,
            "capabilities": Raw(identity.capabilities),
            "clientInfo": Raw(identity.info),
        }
    )
    reply = await _outcome(connection, connection.start("initialize", params, timeout=0))
    result = _result(reply, "initialize")
    revision = decode_text(result.get("protocolVersion", Raw(b"null")))
    if revision not in LEGACY_REVISIONS:
        raise RpcError(UNSUPPORTED_REVISION, f"the server wants revision {revision!r}, which polyplex does not speak")
    return _peer(Era.LEGACY, revision, result, result.get("serverInfo"))


async def _discover(connection: Connection, identity: Identity) -> Peer:
    revision = LATEST_MODERN
    for _ in range(2):
        params = encode_json({"_meta": identity.envelope(revision)})
        headers = [("MCP-Protocol-Version", revision), ("Mcp-Method", "server/discover")]
        reply = await _outcome(connection, connection.start("server/discover", params, timeout=0, headers=headers))
        offered = None if reply.error is None else _offered(reply.error)
        if offered is None:
            result = _result(reply, "server/discover")
            supported = _supported(result)
            if not set(supported) & set(MODERN_REVISIONS):
                raise RpcError(UNSUPPORTED_REVISION, f"server/discover offers {supported or 'no revision'}")
            meta = decode_fields(result["_meta"]) if "_meta" in result else {}
            return _peer(Era.MODERN, revision, result, meta.get(envelope.SERVER_INFO_KEY))
        revision = offered
    raise RpcError(UNSUPPORTED_REVISION, "the server refuses the revisions it says it supports")


async def _outcome(connection: Connection, exchange: Exchange) -> Reply:
    try:
        return await exchange
    except asyncio.CancelledError:
        connection.cancel(exchange, "the other era answered first")
        raise


def _result(reply: Reply, method: str) -> Fields:
    if reply.error is not None:
        error = decode_error(reply.error)
        raise RpcError(error.code, f"{error.message} (to {method})")
    return decode_fields(reply.result or b"{}")


def _supported(result: Fields) -> list[str]:
    """The revisions that a discover result names; what is no list of texts names none."""
    try:
        return msgspec.json.decode(result.get("supportedVersions", Raw(b"[]")), type=list[str])
    except msgspec.DecodeError:
        return []


def _offered(raw: bytes) -> str | None:
    """A revision we speak, out of those that a refusal names."""
    error = decode_error(raw)
    if error.code != UNSUPPORTED_REVISION or error.data is UNSET:
        return None
    try:
        supported = msgspec.json.decode(error.data, type=_Supported).supported
    except msgspec.DecodeError:
        return None
    return max((revision for revision in supported if revision in MODERN_REVISIONS), default=None)


def _peer(era: Era, revision: str, result: Fields, info: Raw | None) -> Peer:
    raw = result.get("capabilities")
    capabilities = decode_fields(raw) if raw is not None and bytes(raw)[:1] == b"{" else {}
    text = result.get("instructions")
    instructions = decode_text(text) if text is not None and bytes(text)[:1] == b'"' else None
    return Peer(era, revision, capabilities, b"{}" if info is None else bytes(info), instructions)
