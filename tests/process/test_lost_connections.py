"""`polyplex serve` and a client that loses its connection ten times in one long call: every event once, and its end."""

import asyncio
import json
import re
from asyncio import IncompleteReadError
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.process.cli import Home, read_until
from tests.process.endpoint_stage import Client, initialize, notification, request
from tests.process.http_stage import DEADLINE_SECONDS, raw_client, raw_server
from tests.process.stepping import PollingServer, journal, stdio_entry

LATEST = "2025-11-25"
RESUMABLE = ("2025-03-26", "2025-06-18", LATEST)
Step = Callable[[], Awaitable[None]]


@asynccontextmanager
async def serving(home: Home, server: dict[str, Any]) -> AsyncGenerator[int]:
    """polyplex before one server named `s`; gives its port."""
    home.configure({"s": server})
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        said = await asyncio.to_thread(read_until, process, "ready ")
        found = re.search(r"^serving  http://127\.0\.0\.1:(\d+)/mcp$", said, re.MULTILINE)
        assert found is not None
        yield int(found[1])


class LosingClient:
    """What a client knows: where it was on the stream, and what it got."""

    def __init__(self, port: int, revision: str) -> None:
        self.port, self.revision = port, revision
        self.session: str | None = None
        self.last: str | None = None
        self.got: list[Any] = []
        self.losses = 0
        self._current: Client | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Client]:
        async with raw_client(self.port) as raw:
            yield Client(raw, self.session, self.revision if self.session else None)

    async def begin_session(self) -> None:
        async with self.connection() as client:
            self.session = (await client.post(initialize(self.revision))).headers["mcp-session-id"]
        await self.post(notification("notifications/initialized"))

    async def post(self, body: Any) -> Any:
        """A message on a connection that holds; its result."""
        async with self.connection() as client:
            response = await client.post(body)
            assert response.status in (200, 202)
            return json.loads(response.body)["result"] if response.body else None

    async def call(self, tool: str) -> None:
        await self.post(request("tools/call", f"{tool} {self.losses}", name=f"s__{tool}", arguments={}))

    async def tell(self, client: Client) -> dict[str, Any]:
        """The next event, taken in; empty where the stream ends."""
        event = await client.event()
        self.last = event.get("id", self.last)
        if "frame" in event:
            frame = event["frame"]
            self.got.append(frame["params"]["progress"] if "params" in frame else frame["result"]["content"][0]["text"])
        return event

    # -- the ways to lose a connection
    async def lose(self, client: Client, how: Callable[["LosingClient", Client], Awaitable[None]]) -> None:
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await how(self, client)
        except (IncompleteReadError, ConnectionError):
            pass  # the server has closed the stream: lost as well
        self.losses += 1

    async def half_a_request(self, client: Client) -> None:
        head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: {self.session}\r\nLast-Event-ID: {self.last}"
        async with raw_client(self.port) as raw:
            await raw.send(head.encode())
            raw.reset()
        client.connection.reset()

    async def nothing_read(self, client: Client) -> None:
        client.connection.reset()

    async def half_a_head(self, client: Client) -> None:
        await client.connection.reader.readexactly(20)
        client.connection.reset()

    async def before_the_priming_event(self, client: Client) -> None:
        await client.connection.head()
        client.connection.reset()

    async def one_byte_of_an_event(self, client: Client) -> None:
        await client.connection.head()
        await client.connection.reader.readexactly(1)
        client.connection.close()

    async def half_an_event(self, client: Client) -> None:
        await client.connection.reader.readuntil(b'"params"')
        client.connection.reset()

    async def between_events(self, client: Client) -> None:
        await client.connection.head()
        while "frame" not in await self.tell(client):
            pass
        client.connection.close()

    async def reset_between_events(self, client: Client) -> None:
        await client.connection.head()
        await self.tell(client)
        client.connection.reset()


LOSSES = (
    LosingClient.half_an_event,
    LosingClient.before_the_priming_event,
    LosingClient.between_events,
    LosingClient.half_a_request,
    LosingClient.nothing_read,
    LosingClient.half_an_event,
    LosingClient.half_a_head,
    LosingClient.one_byte_of_an_event,
    LosingClient.reset_between_events,
    LosingClient.between_events,
)


async def losing_ten_times(client: LosingClient, begun: Step, step: Step, finish: Step) -> None:
    """The whole call, and what must have come of it."""
    call = request("tools/call", 7, name="s__slow", arguments={}, _meta={"progressToken": "p"})
    async with client.connection() as cut:  # lost within the request: it never came, and may be sent again
        await cut.connection.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        cut.connection.reset()
    async with client.connection() as posted:
        await posted.send(call)
        await begun()
        await step()
        await posted.connection.head()
        event = await client.tell(posted)
        if client.revision != LATEST:
            assert client.got == [1]
        elif event["data"] == "":
            assert client.got == []
        await client.lose(posted, LosingClient.nothing_read)
    for how in LOSSES:
        await step()
        async with client.connection() as resumed:
            await resumed.open_only(client.last)
            await client.lose(resumed, how)
    await finish()
    async with client.connection() as unread:
        await unread.open_only(client.last)
        await client.post(request("ping", "after the result"))
        await client.lose(unread, LosingClient.nothing_read)
    while "the end" not in client.got:
        async with client.connection() as resumed:
            await resumed.open(client.last)
            while await client.tell(resumed):
                pass
    assert client.losses >= 10
    assert client.got == [*range(1, len(LOSSES) + 2), "the end"]


@pytest.mark.parametrize("revision", RESUMABLE)
async def test_with_a_server_on_stdio(tmp_path: Path, revision: str) -> None:
    home = Home(tmp_path)
    async with serving(home, stdio_entry(tmp_path)) as port:
        client = LosingClient(port, revision)
        await client.begin_session()

        async def begun() -> None:
            async with asyncio.timeout(DEADLINE_SECONDS):
                while not any(each.get("params", {}).get("name") == "slow" for each in journal(tmp_path)):
                    await client.post(request("ping", "is it there"))

        async def step() -> None:
            await client.call("step")

        async def finish() -> None:
            await client.call("finish")

        await losing_ten_times(client, begun, step, finish)
    assert [each["params"]["name"] for each in journal(tmp_path) if "arguments" in each.get("params", {})].count(
        "slow"
    ) == 1


@pytest.mark.parametrize("revision", RESUMABLE)
async def test_with_a_server_over_http_that_closes_its_stream_itself(tmp_path: Path, revision: str) -> None:
    home, server = Home(tmp_path), PollingServer()
    async with raw_server(server.serve) as raw, serving(home, {"url": raw.url}) as port:
        client = LosingClient(port, revision)
        await client.begin_session()

        async def begun() -> None:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await server.begun.wait()

        await losing_ten_times(client, begun, server.step, server.finish)
        assert server.losses >= 10
