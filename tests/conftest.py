"""What every test may lean on: coroutine tests run on uvloop, and the real peers are found or the test skips."""

import asyncio
import inspect
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest
import uvloop

from scripts.peers import PeersError, node_peers, python_peers, python_sdks
from tests.wire import watch


def pytest_configure() -> None:
    """A shell starts background jobs with SIGINT ignored, which children would inherit: some tests send it to them."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test on a fresh uvloop; pytest-timeout is its outer deadline."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(pyfuncitem.obj(**arguments))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What was sent in one test is no matter of the next."""
    watch.begin()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Fail a test in which polyplex sent a message that its revision does not allow."""
    yield
    watch.check({mark.args[0]: mark.kwargs["reason"] for mark in item.iter_markers("off_schema")})


@pytest.fixture(scope="session", name="python_peers")
def installed_python_peers() -> dict[str, Path]:
    """Command name to executable of the PyPI servers that scripts/peers.py installs."""
    try:
        return python_peers(install=False)
    except PeersError as error:
        return _missing(error)


@pytest.fixture(scope="session", name="python_sdks")
def installed_python_sdks() -> dict[str, Path]:
    """By revision, the Python of an environment with the release of the official SDK that spoke it first."""
    try:
        return python_sdks(install=False)
    except PeersError as error:
        return _missing(error)


@pytest.fixture(scope="session", name="node_peers")
def installed_node_peers() -> dict[str, Path]:
    """Command name to script of the npm peers, and `node`, `bin`, `node_modules`."""
    try:
        return node_peers(install=False)
    except PeersError as error:
        return _missing(error)


def _missing(error: PeersError) -> dict[str, Path]:
    """Skips with the reason; in CI, where everything is installed first, it fails instead."""
    if os.environ.get("CI"):
        pytest.fail(str(error))
    pytest.skip(str(error))
