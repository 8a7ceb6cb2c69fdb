"""Walking a server's lists over all their pages, with guards against lists that never end."""

import logging
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError, UpstreamTimeout
from polyplex.protocol.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, decode_text, encode_json
from polyplex.protocol.revisions import LIST_METHODS, Era
from polyplex.upstreams.connection import Connection
from polyplex.upstreams.handshake import Identity

log = logging.getLogger("polyplex.upstreams")
MAX_PAGES: Final = 2000
MAX_ENTRIES: Final = 100_000
LIST_SECONDS: Final = 30.0
CAPABILITY_OF: Final = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "prompts/list": "prompts",
}
DEFAULT_TTL_MS: Final = 60_000
_decode_list = msgspec.json.Decoder(list[Raw]).decode


class Listing(msgspec.Struct, frozen=True):
    """One list as the server gave it: raw entries, and how long and for whom they may be cached (modern servers).

    `failure` tells why the rest of it is missing.
    """

    entries: list[bytes]
    ttl_ms: int | None = None
    private: bool = False
    failure: str | None = None


def offers(connection: Connection, method: str) -> bool:
    """True where the server declared the capability that a list needs."""
    peer = connection.peer
    return peer is not None and CAPABILITY_OF[method] in peer.capabilities


async def fetch_list(connection: Connection, method: str, identity: Identity) -> Listing:
    """All pages of a list; where a later page fails, those before it. A cursor that is refused means to start again.

    Raises `UpstreamError` or `RpcError` for the first page, or where the connection is lost. A server without the
    method has an empty list.
    """
    entries: list[bytes] = []
    seen: set[str] = set()
    cursor: str | None = None
    ttl: int | None = None
    private = False
    failure: str | None = None
    restarted = False
    for _ in range(MAX_PAGES):
        try:
            result = await connection.request(method, _params(connection, cursor, identity), seconds=LIST_SECONDS)
        except (RpcError, UpstreamTimeout) as error:
            if isinstance(error, RpcError) and error.code == METHOD_NOT_FOUND and not entries:
                break
            if cursor is None:
                raise
            if not restarted and isinstance(error, RpcError) and error.code == INVALID_PARAMS:
                log.info("%s: %s refuses its own cursor; starting again", connection.server, method)
                entries.clear()
                seen.clear()
                cursor, restarted = None, True
                continue
            failure = f"the list is cut short: its page {len(seen) + 1} failed: {error}"
            log.warning("%s: %s: %s", connection.server, method, failure)
            break
        page = _page(connection, method, result.get(LIST_METHODS[method], Raw(b"[]")))
        entries += page
        ttl = _least(ttl, result.get("ttlMs"))
        private |= bytes(result.get("cacheScope", Raw(b'"public"'))) != b'"public"'
        cursor = _next(result.get("nextCursor"))
        if cursor is None or len(entries) > MAX_ENTRIES:
            break
        if cursor in seen:
            log.warning("%s: %s repeats the cursor %.40r; the list ends there", connection.server, method, cursor)
            break
        seen.add(cursor)
    else:
        log.warning("%s: %s has more than %d pages; the rest is left out", connection.server, method, MAX_PAGES)
    return Listing(list(dict.fromkeys(entries)), ttl, private, failure)


def _params(connection: Connection, cursor: str | None, identity: Identity) -> bytes:
    params: dict[str, object] = {} if cursor is None else {"cursor": cursor}
    peer = connection.peer
    if peer is not None and peer.era is Era.MODERN:
        params["_meta"] = identity.envelope(peer.revision)
    return encode_json(params)


def _page(connection: Connection, method: str, raw: Raw) -> list[bytes]:
    try:
        return [bytes(entry) for entry in _decode_list(raw)]
    except (msgspec.DecodeError, RecursionError) as error:
        raise UpstreamError(connection.server, f"{method} gave no list: {error}") from None


def _next(raw: Raw | None) -> str | None:
    if raw is None or bytes(raw) == b"null":
        return None
    try:
        return decode_text(raw)
    except RemoteProtocolError:
        return None


def _least(ttl: int | None, raw: Raw | None) -> int | None:
    if raw is None:
        return ttl
    text = bytes(raw)
    value = max(0, int(text)) if text.lstrip(b"-").isdigit() else DEFAULT_TTL_MS
    return value if ttl is None else min(ttl, value)
