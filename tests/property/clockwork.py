"""An event loop whose time is the test's: it stands still while anything can run, and jumps to the next timer."""

import asyncio
import gc
import selectors
from collections.abc import Callable, Coroutine
from typing import Any


class _Jumps(selectors.SelectSelector):
    """Instead of waiting, time passes. With nothing to wait for, the test would hang: that is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits, and nothing will ever happen")
        self.now += max(0.0, timeout)
        return super().select(0)


class Clockwork(asyncio.SelectorEventLoop):
    """`problems` are the errors that nobody else heard of."""

    def __init__(self) -> None:
        self._jumps = _Jumps()
        super().__init__(self._jumps)
        self._clock_resolution = 1e-6
        self.problems: list[dict[str, Any]] = []
        self.set_exception_handler(lambda _, context: self.problems.append(context))

    def time(self) -> float:
        return self._jumps.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """What would run in a thread runs at once: no time passes, and it is the same every time."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            done.set_exception(error)
        return done

    @property
    def idle(self) -> bool:
        """True where nothing can run before time passes."""
        return not self._ready  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]

    def timers(self) -> list[Any]:
        """The timers that are still to come."""
        scheduled: list[Any] = self._scheduled  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue]
        return [timer for timer in scheduled if not timer.cancelled()]


async def rounds(number: int) -> None:
    """Let the loop go round that often; no time passes."""
    for _ in range(number):
        await asyncio.sleep(0)


async def quiet() -> None:
    """Until nothing can run before time passes."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Clockwork)
    await asyncio.sleep(0)
    while not loop.idle:  # noqa: ASYNC110
        await asyncio.sleep(0)


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; afterwards no task, no timer and no unheard error may be left."""
    loop = Clockwork()
    try:
        loop.run_until_complete(main())
        loop.run_until_complete(quiet())
        left = asyncio.all_tasks(loop)
        assert not left, f"tasks left behind: {left}"
        assert not loop.timers(), f"timers left behind: {loop.timers()}"
    finally:
        loop.close()
    gc.collect(0)
    assert not loop.problems, loop.problems
