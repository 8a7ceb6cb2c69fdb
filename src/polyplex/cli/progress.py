"""What people see while servers start: a line for each that is ready or failed, and who is still waited for."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from polyplex.cli.configuration import count
from polyplex.cli.reasons import plain_reason
from polyplex.cli.terminal import LABEL_WIDTH, Terminal, one_line
from polyplex.telemetry.redact import redact
from polyplex.upstreams.pool import Pool
from polyplex.upstreams.upstream import State, Upstream

TICK_SECONDS: Final = 0.1
WHEEL: Final = "|/-\\"
NAMES_SHOWN: Final = 4
SECONDS_WIDTH: Final = len("    0.0 s  ")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a server's first start. `reason` is None when it is ready."""

    upstream: Upstream
    seconds: float
    reason: str | None

    @property
    def name(self) -> str:
        """The server's name."""
        return self.upstream.config.name


async def watch_start(pool: Pool, report: Callable[[Outcome], None], terminal: Terminal) -> list[Outcome]:
    """Wait until every server that has been started is ready or has failed; `report` gets each when it happens."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    outcomes: list[Outcome] = []
    upstreams = [server.base for server in pool.servers.values() if server.base is not None]
    waiting = {
        loop.create_task(_first_attempt(upstream)): upstream for upstream in upstreams if not _is_asleep(upstream)
    }
    try:
        while waiting:
            timeout = TICK_SECONDS if terminal.interactive else None
            done, _ = await asyncio.wait(waiting, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            seconds = loop.time() - began
            for task in done:
                upstream = waiting.pop(task)
                if upstream.state is State.STOPPED:  # everything ends, which is no failure of this server
                    continue
                outcomes.append(_outcome(upstream, seconds))
                report(outcomes[-1])
            terminal.live(_waiting([upstream.config.name for upstream in waiting.values()], seconds))
    finally:
        for task in waiting:
            task.cancel()
        terminal.live("")
    return outcomes


async def _first_attempt(upstream: Upstream) -> None:
    if upstream.unsettled:
        await upstream.settled()


def _is_asleep(upstream: Upstream) -> bool:
    """A lazy server whose lists are remembered: it starts when it is used."""
    return upstream.state is State.IDLE and not upstream.unsettled


def _outcome(upstream: Upstream, seconds: float) -> Outcome:
    ready = upstream.connection is not None
    return Outcome(upstream, seconds, None if ready else failure(upstream))


def failure(upstream: Upstream) -> str:
    """Why an upstream is not connected, on one line and without secrets."""
    return redact(one_line(plain_reason(upstream.error or "it is not connected")))


def _waiting(names: list[str], seconds: float) -> str:
    if not names:
        return ""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    wheel = WHEEL[int(seconds / TICK_SECONDS) % len(WHEEL)]
    return f"{wheel} waiting for {', '.join(names[:NAMES_SHOWN])}{more}, {seconds:.0f} s"


def offered(upstream: Upstream) -> str:
    """What a server offers: `3 tools, 1 prompt`."""
    nouns = {"tools": "tool", "resources": "resource", "resourceTemplates": "resource template", "prompts": "prompt"}
    counts = [(len(upstream.lists.get(member, ())), noun) for member, noun in nouns.items()]
    parts = [count(number, noun) for number, noun in counts if number]
    if upstream.set_aside:
        parts.append(f"{len(upstream.set_aside)} set aside")
    return ", ".join(parts) or "nothing"


class StartReport:
    """Prints the outcomes as aligned lines."""

    def __init__(self, terminal: Terminal, names: list[str], *, failures_only: bool = False) -> None:
        self._terminal = terminal
        self._width = min(max(map(len, names), default=0), 24)
        self._failures_only = failures_only

    def __call__(self, outcome: Outcome) -> None:
        """Print one outcome."""
        terminal = self._terminal
        name = f"{outcome.name:<{self._width}}"
        seconds = terminal.paint(f"{outcome.seconds:5.1f} s", "dim")
        if outcome.reason is not None:
            column = LABEL_WIDTH + len(name) + SECONDS_WIDTH
            reason = terminal.wrapped(outcome.reason, column)
            terminal.say(f"{terminal.paint('failed', 'red')}   {name}  {seconds}  {reason}")
        elif not self._failures_only:
            terminal.say(f"{terminal.paint('ok', 'green')}       {name}  {seconds}  {offered(outcome.upstream)}")
