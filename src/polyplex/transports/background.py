"""Tasks that nobody awaits: kept alive while they run, and ended together."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any


class Background:
    """The event loop holds its tasks weakly; this holds them until they are done."""

    __slots__ = ("_tasks",)

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine in the background."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        """Cancel what is still running."""
        for task in list(self._tasks):
            task.cancel()

    async def finish(self) -> None:
        """Wait for what is still running; its failures have been dealt with where they arose."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))


async def wait_all(coroutines: Sequence[Coroutine[Any, Any, None]], seconds: float) -> None:
    """Run coroutines side by side for at most `seconds`; the late ones are cancelled."""
    if not coroutines:
        return
    tasks = [asyncio.get_running_loop().create_task(coroutine) for coroutine in coroutines]
    try:
        await asyncio.wait(tasks, timeout=seconds)
    finally:
        for task in tasks:
            task.cancel()
