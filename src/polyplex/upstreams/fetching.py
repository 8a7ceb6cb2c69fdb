"""Asks a server for several lists at once, and takes in what comes: a list that is late holds up no other."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.protocol.revisions import LIST_METHODS
from polyplex.transports.background import Background
from polyplex.upstreams.connection import Connection
from polyplex.upstreams.handshake import Identity
from polyplex.upstreams.lists import Listing, fetch_list, offers
from polyplex.upstreams.offers import Offers

log = logging.getLogger("polyplex.upstreams")
LATE_SECONDS: Final = 3.0


class Fetching:
    """`store` takes one list in, `listed` is told which ones are known anew; `late` holds what is still waited for."""

    __slots__ = ("_listed", "_offers", "_store", "late")

    def __init__(
        self, known: Offers, store: Callable[[str, Listing], None], listed: Callable[[frozenset[str]], None]
    ) -> None:
        self._offers, self._store, self._listed = known, store, listed
        self.late = Background()

    async def fetch(self, connection: Connection, identity: Identity, members: frozenset[str]) -> None:
        """Ask for these lists. When one has come, the others have a little longer; later ones join when they come."""
        methods = [method for method, member in LIST_METHODS.items() if member in members]
        start = asyncio.get_running_loop().create_task
        tasks = {
            method: start(self._fetch_one(connection, identity, method))
            for method in methods
            if offers(connection, method)
        }
        try:
            await _first_and_soon(list(tasks.values()))
        except asyncio.CancelledError:
            for task in tasks.values():
                task.cancel()
            raise
        for method in methods:
            task, member = tasks.get(method), LIST_METHODS[method]
            if task is None or task.done():
                self._store(member, Listing([]) if task is None else task.result())
                continue
            log.warning("%s: %s has not been answered yet; going on without it", connection.server, method)
            self._store(member, self._whole(member) or Listing([], failure=f"{method} has not been answered yet"))
            self.late.start(self._join(connection, member, task))
        self._listed(members)

    async def _join(self, connection: Connection, member: str, task: asyncio.Task[Listing]) -> None:
        """Take a late list in, unless a newer one has come or the session is over."""
        stored = self._offers.listings[member]
        listing = await task
        if connection.open and self._offers.listings[member] is stored:
            self._store(member, listing)
            self._listed(frozenset({member}))

    async def _fetch_one(self, connection: Connection, identity: Identity, method: str) -> Listing:
        try:
            return await fetch_list(connection, method, identity)
        except (UpstreamError, RpcError, RemoteProtocolError) as error:
            log.warning("%s: %s failed: %s", connection.server, method, error)
            return self._whole(LIST_METHODS[method]) or Listing([], failure=f"{method} failed: {error}")

    def _whole(self, member: str) -> Listing | None:
        """The list of before, where nothing of it is missing."""
        listing = self._offers.listings.get(member)
        return listing if listing is not None and listing.failure is None else None


async def _first_and_soon(tasks: list[asyncio.Task[Listing]]) -> None:
    """Wait for the first of them, and for the others a little longer."""
    if tasks:
        _, late = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if late:
            await asyncio.wait(late, timeout=LATE_SECONDS)
