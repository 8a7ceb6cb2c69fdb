"""The clients of an endurance run: they open sessions, make calls, and end in different ways."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from client import HttpClient, Message, Refused, StdioClient, WrongAnswer, until_listed
from processes import descendants, private_environment, wait_gone
from soak_ledger import Ledger

ENDINGS = ("delete", "drop", "modern", "drop in flight", "delete", "modern", "drop", "delete", "modern", "stdio")
STDIO_EVERY = 5  # a client over stdio is a polyplex of its own and takes longer: only every fifth in turn
STDIO_CALLS = 200
PADDING = "p" * 64
Call = Callable[[str, Message], Awaitable[Message]]
LOST = (TimeoutError, OSError, EOFError, Refused, WrongAnswer, asyncio.IncompleteReadError)


class SessionBroken(Exception):
    """A call got no good answer, which is booked; the session is given up."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is done."""

    calls: int
    reconnects: int
    clients: int
    patience: float


class Crowd:
    """A fixed number of clients at the same time, each a row of sessions one after the other."""

    def __init__(self, plan: Plan, ledger: Ledger, port: int, upstreams: list[str], stdio_command: list[str]) -> None:
        self.plan, self.ledger, self.port = plan, ledger, port
        self.upstreams, self.stdio_command = upstreams, stdio_command
        self.left = plan.calls
        self.sessions = plan.reconnects + plan.clients
        self.per_session = max(plan.calls // self.sessions, 1)
        self.opened = 0
        self.serial = 0
        self.endings: Counter[str] = Counter()

    def summary(self) -> str:
        """How many sessions ended in which way."""
        return ", ".join(f"{count} {ending}" for ending, count in sorted(self.endings.items()))

    async def run(self) -> None:
        """Until all calls are made and all sessions were opened."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self.plan.clients):
                group.create_task(self.client())

    async def client(self) -> None:
        """One session after the other."""
        while self.opened < self.sessions or self.left > 0:
            turn = self.opened
            self.opened += 1
            ending = ENDINGS[turn % len(ENDINGS)]
            if ending == "stdio" and turn // len(ENDINGS) % STDIO_EVERY:
                ending = "drop"
            self.endings[ending] += 1
            try:
                await (self.stdio_session() if ending == "stdio" else self.http_session(ending))
            except SessionBroken:
                await asyncio.sleep(0.1)
            except LOST as error:
                self.ledger.wrong.append(f"session that ends by {ending}: {error!r}")
                await asyncio.sleep(0.1)

    def take(self, count: int) -> int:
        """Reserve calls of the plan."""
        taken = min(count, self.left)
        self.left -= taken
        return taken

    async def one_call(self, call: Call) -> None:
        """One call with a text of its own, to the upstreams in turn. Raises SessionBroken."""
        self.serial += 1
        upstream = self.upstreams[self.serial % len(self.upstreams)]
        text = f"{self.serial}:{upstream}:{PADDING}"
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.plan.patience):
                answer = await call(f"{upstream}__echo", {"message": text})
        except LOST as error:
            self.ledger.book_silence(upstream, error)
            raise SessionBroken from error
        if not self.ledger.book(upstream, text, began, answer):
            await asyncio.sleep(0.02)

    async def http_session(self, ending: str) -> None:
        """A session over HTTP, and its end."""
        client = HttpClient(self.port, "modern" if ending == "modern" else "legacy")
        async with asyncio.timeout(self.plan.patience):
            await client.open()
        try:
            for _ in range(self.per_session):
                if not self.take(1):
                    break
                await self.one_call(client.call)
            if ending == "delete":
                async with asyncio.timeout(self.plan.patience):
                    await client.delete()
            elif ending != "modern":
                self.ledger.sessions_left_open += 1
            if ending == "drop in flight":
                await self.abandon(client)
        finally:
            client.drop()

    async def abandon(self, client: HttpClient) -> None:
        """Send a call and go away before its answer."""
        self.ledger.abandoned += 1
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0):
                await client.call(f"{self.upstreams[0]}__echo", {"message": "nobody waits for this"})

    async def stdio_session(self) -> None:
        """A session over stdio: a polyplex of its own that must end with its input and leave no child."""
        number = self.opened
        client = await StdioClient.start(self.stdio_command, private_environment(f"soak-stdio-{number}"))
        family: set[int] = set()
        try:
            async with asyncio.timeout(self.plan.patience):
                await client.open()
                await until_listed(client, 2 * len(self.upstreams))
            family = set(descendants(client.pid))
            wanted = self.take(min(self.per_session, STDIO_CALLS))
            for start in range(0, wanted, 8):
                async with asyncio.TaskGroup() as group:
                    for _ in range(start, min(start + 8, wanted)):
                        group.create_task(self.one_call(client.call))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from errors
        finally:
            status = await client.close(15)
            left = await asyncio.to_thread(wait_gone, family, 3.0)
            self.note_end(client, status, left)

    def note_end(self, client: StdioClient, status: int | None, left: set[int]) -> None:
        """What a stdio session must not leave behind."""
        self.ledger.wrong += client.strays
        if status is None:
            self.ledger.wrong.append("a polyplex on stdio did not end 15 s after its input")
        elif status != 0:
            self.ledger.wrong.append(f"a polyplex on stdio ended with {status}: {client.errors[-300:]!r}")
        if left:
            self.ledger.wrong.append(f"a polyplex on stdio left {len(left)} children behind")
