"""Tests with real processes that run on uvloop and on plain asyncio: those that use `loop_factory`."""

import asyncio
import inspect
from collections.abc import Callable
from typing import cast

import pytest
import uvloop

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@pytest.fixture(params=[uvloop.new_event_loop, asyncio.new_event_loop], ids=["uvloop", "asyncio"])
def loop_factory(request: pytest.FixtureRequest) -> LoopFactory:
    """The kind of event loop that the test runs on."""
    return request.param


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test that uses `loop_factory` on such a loop; no task of its may be left behind."""
    factory = cast("LoopFactory | None", pyfuncitem.funcargs.get("loop_factory"))
    if factory is None or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(_alone(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})))
    return True


async def _alone(test: object) -> None:
    assert inspect.iscoroutine(test)
    await test
    left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left, f"tasks left behind: {left}"
