"""Our own `subscriptions/listen` with a modern server: one stream for all its list changes (2026-07-28)."""

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Raw

from polyplex.errors import UpstreamError
from polyplex.transports.exchange import Exchange
from polyplex.upstreams.connection import Connection

FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 30.0
_DECLARED: Final = b'"listChanged":true'


def wanted_changes(connection: Connection) -> dict[str, bool]:
    """The filter for all kinds of list change that the server declares."""
    capabilities = {} if connection.peer is None else connection.peer.capabilities
    return {
        f"{name}ListChanged": True
        for name in ("tools", "prompts", "resources")
        if _DECLARED in bytes(capabilities.get(name, Raw(b""))).replace(b" ", b"")
    }


class Listening:
    """The stream with one server. `ready` is set once the server has acknowledged it, or offers none."""

    __slots__ = ("exchange", "ready")

    def __init__(self) -> None:
        self.ready = asyncio.Event()
        self.exchange: Exchange | None = None

    def acknowledged(self, exchange: Exchange | None) -> bool:
        """The server acknowledges a stream; True where it is this one."""
        ours = exchange is not None and exchange is self.exchange
        if ours:
            self.ready.set()
        return ours

    async def keep(
        self, connection: Connection, params: Callable[[dict[str, bool]], bytes], missed: Callable[[], None]
    ) -> None:
        """Keep the stream open for as long as the connection is; `missed` is called after each gap."""
        wanted, delay = wanted_changes(connection), FIRST_DELAY
        headers = [("Mcp-Method", "subscriptions/listen")]
        while wanted and connection.open:
            exchange = connection.start("subscriptions/listen", params(wanted), timeout=0, headers=headers)
            self.exchange = exchange
            try:
                reply = await exchange
            except UpstreamError:
                reply = None
            except asyncio.CancelledError:
                connection.cancel(exchange, "polyplex is closing")
                raise
            if reply is not None and reply.error is not None:
                break
            self.ready.clear()
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)
            missed()
        self.ready.set()
