"""All servers of a configuration, started for one command and stopped after it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from polyplex.cli.progress import Outcome, StartReport, watch_start
from polyplex.cli.terminal import Terminal
from polyplex.config import Config
from polyplex.gateway.app import Gateway
from polyplex.gateway.multiplexer import Multiplexer
from polyplex.gateway.serving import new_event_loop
from polyplex.mux.router import Routes
from polyplex.telemetry import configure_logging

T = TypeVar("T")
Answer = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]


def run(work: Coroutine[Any, Any, T], terminal: Terminal, *, verbose: bool) -> T:
    """Run a command's coroutine. Ctrl-C cancels it, and raises `KeyboardInterrupt` when it has cleaned up."""
    configure_logging("debug" if verbose else "warning", stream=terminal)  # pyright: ignore[reportArgumentType]
    if not verbose:
        logging.getLogger("polyplex.upstreams").setLevel(logging.ERROR)  # the command reports failures itself
        logging.getLogger("polyplex.gateway").setLevel(logging.ERROR)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(work)
    finally:
        terminal.live("")


@asynccontextmanager
async def started(
    config: Config, terminal: Terminal, elicit: Answer
) -> AsyncGenerator[tuple[Multiplexer, list[Outcome]]]:
    """Start all servers, wait for each, and report those that fail. They are told the same in every command, since
    some offer their tools by what the client can do."""
    answers: Mapping[str, Answer] = {"elicitation/create": elicit, "roots/list": _roots}
    async with Multiplexer.from_config(config, answers=answers) as multiplexer:
        report = StartReport(terminal, [n for n, s in config.servers.items() if s.enabled], failures_only=True)
        yield multiplexer, await watch_start(multiplexer.gateway.core.pool, report, terminal)


def routes(gateway: Gateway) -> Routes:
    """Everything that is offered, whoever the client is."""
    return gateway.core.view(gateway.core.modern.plain).routes


async def _roots(params: dict[str, Any]) -> dict[str, Any]:
    here = Path.cwd()
    return {"roots": [{"uri": here.as_uri(), "name": here.name or "/"}]}


async def decline(params: dict[str, Any]) -> dict[str, Any]:
    """The answer to an elicitation where nobody can be asked."""
    return {"action": "decline"}
