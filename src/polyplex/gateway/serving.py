"""Running the gateway as a server: endpoints, signals, drain."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

from polyplex.config import Config, state_database
from polyplex.downstream.event_store import EventOptions
from polyplex.downstream.http import HttpEndpoint, HttpOptions
from polyplex.downstream.stdio import StdioEndpoint
from polyplex.gateway.app import Gateway
from polyplex.protocol.revisions import Era
from polyplex.upstreams.pool import Binding

log = logging.getLogger("polyplex")
DRAIN_SECONDS: Final = 10.0
END_SECONDS: Final = 2.0
COLLECTOR: Final = (50_000, 20, 20)
POLL_SECONDS: Final = 0.05
HARD_EXIT: Final = 130


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed, else asyncio's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Signals:
    """SIGTERM and SIGINT ask for a clean end; a second one ends at once."""

    def __init__(self) -> None:
        self.stop = asyncio.Event()
        self.caught: signal.Signals | None = None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._caught, number)

    def _caught(self, number: signal.Signals) -> None:
        if self.stop.is_set():
            sys.stderr.flush()
            os._exit(HARD_EXIT)  # the reaper process sees to the children
        self.caught = number
        self.stop.set()


async def serve_http(
    config: Config, host: str, port: int, on_ready: Callable[[Gateway, list[tuple[str, int]]], None]
) -> signal.Signals | None:
    """Serve clients over HTTP until a signal, which is returned. Raises `OSError` where the address cannot be had."""
    signals = Signals()
    gateway = Gateway(config)
    options = config.options
    endpoint = HttpEndpoint(
        gateway,
        HttpOptions(
            host,
            port,
            options.allowed_hosts,
            options.allowed_origins,
            options.max_body_bytes,
            options.session_idle_seconds,
            EventOptions(
                options.events.max_bytes,
                options.events.memory_bytes,
                options.events.max_age_seconds,
                state_database(options.state),
            ),
        ),
        gateway.health,
        gateway.metrics.render,
    )
    addresses = await endpoint.start()
    gateway.start(Binding(Era.MODERN))
    tune_collector()
    on_ready(gateway, addresses)
    await signals.stop.wait()
    log.info("stopping: no new requests are taken, %d s for those under way", DRAIN_SECONDS)
    endpoint.stop_accepting()
    gateway.drain()
    await _drained(lambda: endpoint.busy, DRAIN_SECONDS)
    await endpoint.close()
    await gateway.stop()
    return signals.caught


async def serve_stdio(config: Config, on_ready: Callable[[Gateway], None]) -> signal.Signals | None:
    """Serve one client on standard input and output until it closes them, or a signal, which is returned."""
    signals = Signals()
    gateway = Gateway(config)
    endpoint = StdioEndpoint(gateway)
    await endpoint.start()
    on_ready(gateway)
    tune_collector()
    loop = asyncio.get_running_loop()
    stop, ended = loop.create_task(_set(signals.stop)), loop.create_task(endpoint.ended())
    await asyncio.wait((stop, ended), return_when=asyncio.FIRST_COMPLETED)
    ended.cancel()
    gateway.drain()
    await _drained(lambda: endpoint.busy, DRAIN_SECONDS if stop.done() else END_SECONDS)
    stop.cancel()
    await endpoint.close()
    await gateway.stop()
    return signals.caught


def tune_collector() -> None:
    """Requests make many short-lived objects and next to no cycles: collect rarely, and never what start-up made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTOR)


async def _set(event: asyncio.Event) -> None:
    await event.wait()


async def _drained(busy: Callable[[], bool], seconds: float) -> None:
    """Wait for calls under way, within bounds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while busy() and loop.time() < end:  # noqa: ASYNC110 - several kinds of call end, none tells
        await asyncio.sleep(POLL_SECONDS)
    if busy():
        log.warning("some requests were still under way and are cut off")
