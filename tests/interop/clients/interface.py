"""What a test asks of a client, whichever SDK it is: plain JSON in, plain JSON out, as it was on the wire."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Era = Literal["legacy", "modern"]
TransportName = Literal["http", "sse", "stdio"]
Kind = Literal["tools", "resources", "resourceTemplates", "prompts"]
Json = dict[str, Any]

NOTICE_SECONDS = 15
SAMPLED_TEXT = "Paris, says the client"
ELICITED_NAME = "Ada"
ROOT_URI = "file:///interop/root"


@dataclass(frozen=True, slots=True)
class Target:
    """Where polyplex is: a URL for http and sse, a command for stdio. Roots are declared over stdio only."""

    transport: TransportName
    url: str = ""
    command: tuple[str, ...] = ()

    @property
    def roots(self) -> bool:
        """Whether a client declares roots: they make polyplex open stdio servers for that client alone."""
        return self.transport == "stdio"


class Notices:
    """Notifications that have arrived, oldest first; tests wait for the one they expect."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, Json]] = []
        self._arrived = asyncio.Event()

    def add(self, method: str, params: Json) -> None:
        """Take in a notification."""
        self.seen.append((method, params))
        self._arrived.set()

    async def wait(self, method: str, matches: Callable[[Json], bool] = lambda _: True, since: int = 0) -> Json:
        """The first notification from position `since` on that matches; raises TimeoutError when there is none."""
        async with asyncio.timeout(NOTICE_SECONDS):
            while True:
                self._arrived.clear()
                for seen, params in self.seen[since:]:
                    if seen == method and matches(params):
                        return params
                await self._arrived.wait()


class BasicClient(Protocol):
    """What every client can do, command-line ones included."""

    era: Era

    async def listed(self, kind: Kind) -> list[Json]:
        """All entries of a list, over all its pages."""
        ...

    async def call(self, name: str, arguments: Json) -> Json:
        """The result of a tool call."""
        ...

    async def read(self, uri: str) -> Json:
        """The contents of a resource."""
        ...

    async def prompt(self, name: str, arguments: dict[str, str]) -> Json:
        """A prompt, filled in."""
        ...


class FullClient(BasicClient, Protocol):
    """What a client can do that keeps its connection."""

    notices: Notices
    filters_logs: bool
    """Whether it asks for less than every log message."""
    loses_last_progress: bool
    """Whether progress is lost that arrives in one read with the result, as the result is handled first."""

    async def complete(self, ref: Json, name: str, value: str) -> list[str]:
        """The values offered for an argument."""
        ...

    async def progress(self, name: str, arguments: Json) -> list[Json]:
        """Call a tool to its end; the progress that was reported meanwhile."""
        ...

    async def cancel(self, name: str, arguments: Json) -> None:
        """Call a tool, and cancel the call once it has reported progress."""
        ...

    async def level(self, level: Literal["warning", "info"]) -> None:
        """Ask for log messages of this level; modern clients ask for warnings with each request instead."""
        ...

    async def watch(self, uri: str) -> None:
        """Have updates of a resource reported as notices from now on."""
        ...
