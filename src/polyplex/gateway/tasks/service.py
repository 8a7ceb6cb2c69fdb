"""All that the gateway does for tasks, put together."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from polyplex.downstream.session import Call, Session
from polyplex.errors import RpcError
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.tasks.asking import Question, question_of
from polyplex.gateway.tasks.calls import TaskCalls
from polyplex.gateway.tasks.legacy import LegacyTasks
from polyplex.gateway.tasks.listing import TaskList
from polyplex.gateway.tasks.methods import TaskMethods
from polyplex.gateway.tasks.modern import ModernTasks
from polyplex.gateway.tasks.registry import Registry
from polyplex.gateway.tasks.reverse import ReverseTasks
from polyplex.gateway.tasks.watching import Watching
from polyplex.mux.task_ids import Sealer
from polyplex.protocol.jsonrpc import METHOD_NOT_FOUND
from polyplex.protocol.revisions import R2025_11_25, Era
from polyplex.transports.background import Background
from polyplex.transports.exchange import Exchange
from polyplex.upstreams.upstream import Upstream

END_SECONDS: Final = 1.0


class Tasks:
    """One for each gateway. `calls` is for the pipeline, the handlers for `Local`, the rest for what servers send."""

    def __init__(self, core: Core, database: Path | None, ring: Callable[[], Sealer]) -> None:
        self._background, self._endings = Background(), Background()
        self.registry = Registry(database, ring)
        legacy = LegacyTasks(self.registry, self._background)
        modern = ModernTasks(self.registry)
        self.calls = TaskCalls(core, self.registry, legacy, modern, self._endings)
        self.reverse = ReverseTasks()
        self._methods = TaskMethods(core, self.registry, legacy, modern)
        self._list = TaskList(core, self.registry, self._methods)
        self.watching = Watching(self.registry, self._methods)

    async def stop(self) -> None:
        """End what runs in the background; servers still hear of calls that were given up."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_SECONDS):
                await self._endings.finish()
        self._endings.cancel()
        self._background.cancel()
        await self._endings.finish()
        await self._background.finish()
        self.registry.close()

    # -- the handlers
    async def get(self, call: Call, client: Client) -> bytes:
        """`tasks/get`."""
        _known_to(call)
        return await self._methods.get(call, client)

    async def result(self, call: Call, client: Client) -> bytes:
        """`tasks/result`."""
        _known_to(call)
        return await self._methods.result(call, client)

    async def list(self, call: Call, client: Client) -> bytes:
        """`tasks/list`."""
        _known_to(call)
        return await self._list.page(call, client)

    async def update(self, call: Call, client: Client) -> bytes:
        """`tasks/update`."""
        return await self._methods.update(call, client)

    async def cancel(self, call: Call, client: Client) -> bytes:
        """`tasks/cancel`."""
        _known_to(call)
        return await self._methods.cancel(call, client)

    # -- what servers and clients send by themselves
    def question(
        self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None
    ) -> Question | None:
        """Whom a server's question concerns that belongs to a task; None where it belongs to none."""
        return question_of(self.registry.lives, upstream, exchange, method, params)

    def closed(self, session: Session) -> None:
        """A client's session has ended."""
        self.reverse.drop(session)


def _known_to(call: Call) -> None:
    """Core tasks exist in 2025-11-25 only. Raises `RpcError` -32601 for clients of older revisions."""
    if call.session.era is Era.LEGACY and call.session.revision < R2025_11_25:
        raise RpcError(METHOD_NOT_FOUND, f"unknown method: {call.method}")
