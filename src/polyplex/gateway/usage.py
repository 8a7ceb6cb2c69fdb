"""Counts what tool results cost, in memory, and brings the counts to the state database every few seconds.

The straight line has each result of a tool counted on its way to the client, after offloading and cutting; that is one
look-up and a few additions. `polyplex cost` reads what was kept.
"""

import asyncio
import logging
import sqlite3
from pathlib import Path
from typing import Final

from polyplex.downstream.session import Call
from polyplex.gateway.builtins import BuiltinTool
from polyplex.gateway.results.service import ApartReply
from polyplex.mux.router import Target
from polyplex.store.usage import Counts, UsageStore
from polyplex.transports.exchange import Reply

log = logging.getLogger("polyplex.gateway")
FLUSH_SECONDS: Final = 5.0
MAX_WAITING: Final = 10_000
BYTES_PER_TOKEN: Final = 4
CALL_TOOL: Final = "call_tool"


def came(reply: Reply, result: bytes) -> int:
    """How many bytes a server sent for a result, those included that were stored on their way in."""
    if isinstance(reply, ApartReply):
        return len(result) + sum(part.payload.size for part in reply.parts.values())
    return len(result)


class Usage:
    """Never raises, and never lets a call wait: where the database fails, a warning is logged once and counts go."""

    def __init__(self, database: Path | None) -> None:
        self._database = database
        self._counts: dict[tuple[str, str], Counts] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[None] | None = None
        self._store: UsageStore | None = None
        self._failed = False
        self._stopped = False

    def add(self, server: str, tool: str, bytes_in: int, tokens_out: int | None = None, offloaded: int = 0) -> None:
        """Count one result: `tool` by the server's own name, the bytes the server sent, the tokens the client gets.

        Without `tokens_out`, as for a result that streams through, they are estimated from the bytes. `offloaded` is
        the number of bytes that became payloads.
        """
        counts = self._counts.get((server, tool))
        if counts is None:
            counts = self._first(server, tool)
        counts.calls += 1
        counts.bytes += bytes_in
        counts.tokens += bytes_in // BYTES_PER_TOKEN if tokens_out is None else tokens_out
        counts.offloaded += offloaded

    def counted(self, call: Call, target: Target, reply: Reply, bytes_in: int | None = None) -> Reply:
        """The reply; the result of a tool is counted, an error is not.

        `bytes_in` is what its server sent; without it, all of that reaches the client.
        """
        stream, result = reply.stream, reply.result
        if call.method == "tools/call" and (stream is not None or result is not None):
            size = len(result) if result is not None else 0 if stream is None else stream.length
            came_in = size if bytes_in is None else bytes_in
            self.add(target.server, target.local, came_in, size // BYTES_PER_TOKEN, max(0, came_in - size))
        return reply

    def counted_builtin(self, call: Call, tool: BuiltinTool, reply: Reply) -> Reply:
        """The reply of a built-in tool, counted too; but what is called through one counts as what it is."""
        if call.method == "tools/call" and tool.entry.local != CALL_TOOL:
            self.add(tool.entry.server, tool.entry.local, len(reply.result or b""))
        return reply

    def _first(self, server: str, tool: str) -> Counts:
        """The first call of a tool since the last write: only then is there something to arrange."""
        counts = Counts()
        if self._stopped or len(self._counts) >= MAX_WAITING:
            return counts
        self._counts[server, tool] = counts
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._due)
        return counts

    def _due(self) -> None:
        self._timer = None
        if self._writing is not None and not self._writing.done():  # a slow disk: once more, later
            self._timer = asyncio.get_running_loop().call_later(FLUSH_SECONDS, self._due)
            return
        self._writing = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        counts, self._counts = self._counts, {}
        if counts:
            await asyncio.to_thread(self._save, counts)

    def _save(self, counts: dict[tuple[str, str], Counts]) -> None:
        """Runs in a thread, one at a time."""
        try:
            if self._store is None:
                self._store = UsageStore(self._database)
            self._store.add(counts)
        except (sqlite3.Error, OSError) as error:
            if not self._failed:
                self._failed = True
                log.warning("the state database cannot be used to count what results cost: %s", error)

    async def flush(self) -> None:
        """Write what has been counted so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._writing is not None:
            await self._writing
        self._writing = asyncio.get_running_loop().create_task(self._write())
        await self._writing

    async def stop(self) -> None:
        """Write what is left, and count no more."""
        self._stopped = True
        if self._timer is not None or self._writing is not None:
            await self.flush()
        if self._store is not None:
            await asyncio.to_thread(self._store.close)
            self._store = None
