"""Log levels: a legacy server has one for its whole session, modern clients name one with each request.

So a legacy server is told the lowest that anybody wants, and what it sends is filtered for each client.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import Final
from weakref import WeakKeyDictionary

from msgspec import Raw

from polyplex.downstream.session import Call, Session
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.gateway.client import Client
from polyplex.protocol.envelope import LOG_LEVELS
from polyplex.protocol.jsonrpc import decode_fields, encode_json
from polyplex.protocol.revisions import Era
from polyplex.transports.background import Background
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
LEVEL_SECONDS: Final = 5.0
_RANK: Final = {level: rank for rank, level in enumerate(LOG_LEVELS)}


class Levels:
    """What the servers have been told. `clients` are the legacy clients by their session."""

    def __init__(self, clients: dict[str, Client]) -> None:
        self._clients = clients
        self._wanted: WeakKeyDictionary[Upstream, int] = WeakKeyDictionary()
        self._background = Background()

    def connected(self, upstream: Upstream) -> None:
        """A new session with a server knows no level yet."""
        if self._lowest(upstream) is not None:
            self._background.start(self._tell(upstream))

    async def changed(self, upstreams: Iterable[Upstream]) -> None:
        """A legacy client wants another level of the servers behind it."""
        await asyncio.gather(*(self._tell(upstream) for upstream in dict.fromkeys(upstreams)))

    async def want(self, upstream: Upstream, level: str) -> bool:
        """A modern client's request for a legacy server names a level: from now on it must send as much.

        True where the server had to be told, which takes a while.
        """
        rank = _RANK[level]
        if rank >= self._wanted.get(upstream, len(LOG_LEVELS)):
            return False
        self._wanted[upstream] = rank
        await self._tell(upstream)
        return True

    async def _tell(self, upstream: Upstream) -> None:
        connection, peer, lowest = upstream.connection, upstream.peer, self._lowest(upstream)
        if connection is None or peer is None or peer.era is Era.MODERN or "logging" not in peer.capabilities:
            return
        if lowest is None:
            return
        params = encode_json({"level": LOG_LEVELS[lowest]})
        try:
            await connection.request("logging/setLevel", params, seconds=LEVEL_SECONDS)
        except (UpstreamError, RpcError) as error:
            log.info("%s: logging/setLevel failed: %s", upstream.config.name, error)

    def _lowest(self, upstream: Upstream) -> int | None:
        sharing = (self._clients[session] for session in upstream.users if session in self._clients)
        levels = (client.session.log_level for client in sharing)
        ranks = [_RANK[level] for level in levels if level is not None]
        if upstream in self._wanted:
            ranks.append(self._wanted[upstream])
        return min(ranks, default=None)


def rank_of(params: bytes | None) -> int:
    """The rank of a message; one without a usable level counts as the lowest."""
    try:
        level = decode_fields(params or b"{}").get("level", Raw(b'"info"'))
    except RemoteProtocolError:
        return 0
    return _RANK.get(bytes(level).strip(b'"').decode("utf-8", "replace"), 0)


def call_wants(call: Call, rank: int) -> bool:
    """True where a message belongs on the stream of a call: a modern one that names no level gets none."""
    if call.session.era is Era.LEGACY:
        return session_wants(call.session, rank)
    return call.log_level is not None and rank >= _RANK[call.log_level]


def session_wants(session: Session, rank: int) -> bool:
    """Without a level a legacy client gets what the server sends."""
    return session.log_level is None or rank >= _RANK[session.log_level]
