"""Small writes of one round of the event loop, sent together at its end.

Each write to a peer that sleeps costs waking it. Where many requests are under way, the peers are woken once for a
whole round; where few are, a write goes out at once, since waiting would only add to its latency.
"""

import asyncio
from typing import Final
from weakref import WeakKeyDictionary

CROWD: Final = 4


class WriteBatch:
    """The writes of one event loop. `load` is the number of requests being served."""

    __slots__ = ("__weakref__", "_loop", "_pending", "load")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pending: dict[asyncio.WriteTransport, list[bytes]] = {}
        self.load = 0

    def write(self, transport: asyncio.WriteTransport, data: bytes) -> None:
        """Write soon. Writes to one transport keep their order as long as all that bypass this call `flush` first."""
        pending = self._pending
        if pending:
            waiting = pending.get(transport)
            if waiting is None:
                pending[transport] = [data]
            else:
                waiting.append(data)
        elif self.load <= CROWD:
            transport.write(data)
        else:
            pending[transport] = [data]
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Write now."""
        if self._pending:
            pending, self._pending = self._pending, {}
            for transport, parts in pending.items():
                if not transport.is_closing():
                    transport.write(parts[0] if len(parts) == 1 else b"".join(parts))


_batches: WeakKeyDictionary[asyncio.AbstractEventLoop, WriteBatch] = WeakKeyDictionary()


def batch_of(loop: asyncio.AbstractEventLoop) -> WriteBatch:
    """The batch of an event loop, shared by all its connections."""
    batch = _batches.get(loop)
    if batch is None:
        batch = _batches[loop] = WriteBatch(loop)
    return batch
