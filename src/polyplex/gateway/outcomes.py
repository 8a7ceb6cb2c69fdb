"""What became of parked calls, kept for a while: the retry may have been lost on its way, or is still to come."""

import asyncio
from typing import Final

from polyplex.transports.exchange import Reply

MAX_BYTES: Final = 64 * 1024 * 1024
OVERHEAD_BYTES: Final = 1024


class Outcomes:
    """By the id of the call. Bounded in bytes; those that were kept first go first."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[Reply, asyncio.TimerHandle]] = {}
        self._bytes = 0
        self._stopped = False

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, call: str, reply: Reply, seconds: float) -> None:
        """Keep a reply for so many seconds."""
        self.forget(call)
        if self._stopped:
            return
        timer = asyncio.get_running_loop().call_later(seconds, self.forget, call)
        self._kept[call] = (reply, timer)
        self._bytes += _size(reply)
        while self._bytes > MAX_BYTES and len(self._kept) > 1:
            self.forget(next(iter(self._kept)))

    def get(self, call: str) -> Reply | None:
        """The reply, where it is still there."""
        known = self._kept.get(call)
        return None if known is None else known[0]

    def forget(self, call: str) -> None:
        """Keep it no longer."""
        known = self._kept.pop(call, None)
        if known is not None:
            self._bytes -= _size(known[0])
            known[1].cancel()

    def stop(self) -> None:
        """Nobody can ask any more: forget all, and keep nothing."""
        self._stopped = True
        for call in list(self._kept):
            self.forget(call)


def _size(reply: Reply) -> int:
    return len(reply.result or b"") + len(reply.error or b"") + OVERHEAD_BYTES
