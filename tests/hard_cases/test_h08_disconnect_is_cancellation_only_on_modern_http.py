"""H8: a client that goes away cancels its call on modern HTTP, and there only; no quiet stream is cut on the way."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from polyplex.downstream import http
from polyplex.downstream.http import HttpEndpoint, HttpOptions
from polyplex.protocol.revisions import LEGACY_REVISIONS
from tests.interaction.stage import Stage, eventually, stage
from tests.process.endpoint_stage import Client, http_endpoint, initialize, modern, request
from tests.process.http_stage import raw_client

LATEST = "2025-11-25"
MOST_QUIET_SECONDS = 15.0


class Front:
    """The HTTP endpoint of a gateway with one server, `s`."""

    def __init__(self, stage: Stage, endpoint: HttpEndpoint, port: int) -> None:
        self.stage, self.endpoint, self.port = stage, endpoint, port

    @asynccontextmanager
    async def client(self, session: str | None = None, revision: str | None = None) -> AsyncGenerator[Client]:
        async with raw_client(self.port) as raw:
            yield Client(raw, session, revision)

    async def session(self, revision: str) -> str:
        async with self.client() as client:
            return (await client.post(initialize(revision))).headers["mcp-session-id"]

    async def held(self) -> None:
        """Wait until the server has the call."""
        await eventually(lambda: self.stage.received("s", "tools/call"))

    async def left(self, client: Client) -> None:
        """The client goes away, and polyplex has noticed."""
        client.connection.reset()
        await eventually(lambda: not any(call.connected for call in self.endpoint._active))

    async def post(self, session: str, tool: str) -> None:
        async with self.client(session, LATEST) as client:
            response = await client.post(request("tools/call", tool, name=f"s__{tool}", arguments={}))
            assert response.status == 200


@asynccontextmanager
async def front(folder: Path, era: str) -> AsyncGenerator[Front]:
    async with stage(folder, {"s": {"era": era}}) as made:
        options = HttpOptions(port=0, session_idle_seconds=60.0)
        endpoint = HttpEndpoint(made.gateway, options, made.gateway.health, made.gateway.metrics.render)
        (_, port), *_ = await endpoint.start()
        await made.up("s")
        try:
            yield Front(made, endpoint, port)
        finally:
            await endpoint.close()


HOLD = request("tools/call", 1, name="s__hold", arguments={})


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_modern_client_that_goes_away_cancels(tmp_path: Path, era: str) -> None:
    async with front(tmp_path, era) as made, made.client() as client:
        body, headers = modern("tools/call", 1, name="s__hold", arguments={})
        await client.send(body, headers)
        await made.held()
        await made.left(client)
        await eventually(lambda: made.stage.received("s", "notifications/cancelled"))
        assert not made.endpoint.busy


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_legacy_client_that_goes_away_does_not(tmp_path: Path, era: str, revision: str) -> None:
    async with front(tmp_path, era) as made:
        session = await made.session(revision)
        async with made.client(session, revision if revision >= "2025-06-18" else None) as client:
            await client.send(HOLD)
            await made.held()
            await made.left(client)
        assert made.endpoint.busy
        await made.post(session, "release")
        await eventually(lambda: not made.endpoint.busy)
        assert not made.stage.received("s", "notifications/cancelled")


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("how", ["DELETE", "idle"])
async def test_the_end_of_a_legacy_session_cancels_what_its_client_left_behind(
    tmp_path: Path, era: str, how: str
) -> None:
    async with front(tmp_path, era) as made:
        session = await made.session(LATEST)
        async with made.client(session, LATEST) as client:
            await client.send(HOLD)
            await made.held()
            await made.left(client)
        if how == "idle":
            made.endpoint._legacy.tick(asyncio.get_running_loop().time() + 120)
        else:
            async with made.client(session, LATEST) as client:
                await client.send(None, None, "DELETE")
                assert (await client.connection.response()).status == 200
        await eventually(lambda: made.stage.received("s", "notifications/cancelled"))
        async with made.client(session, LATEST) as client:
            assert (await client.post(request("tools/list"))).status == 404


@pytest.mark.parametrize("revision", [*LEGACY_REVISIONS, "2026-07-28"])
@pytest.mark.parametrize("phase", [0.0, 0.1, 2.5, 4.9])
async def test_no_stream_of_a_call_is_quiet_for_longer_than_15_seconds(revision: str, phase: float) -> None:
    """`phase` seconds pass from the request to the first tick."""
    async with http_endpoint() as made:
        made.gateway.on["tools/call"] = made.gateway.wait
        legacy = revision in LEGACY_REVISIONS
        body, headers = (request("tools/call", 1), {}) if legacy else modern("tools/call", 1, name="x")
        session = await made.session(revision) if legacy else None
        async with made.client(session, revision if legacy and revision >= "2025-06-18" else None) as client:
            await client.send(body, headers)
            await eventually(lambda: made.endpoint._active)
            (call,) = made.endpoint._active
            begin = last = call._since
            for tick in range(12):
                now = begin + phase + tick * http.TICK_SECONDS
                call.keep_alive(now)
                if call._since == now:
                    assert now - last <= MOST_QUIET_SECONDS - 1, "a tick may come late"
                    last = now
            assert last > begin + 40
            made.gateway.release.set()


async def test_general_streams_are_never_quiet(tmp_path: Path) -> None:
    assert http.TICK_SECONDS < MOST_QUIET_SECONDS
    async with http_endpoint() as made, made.client() as old:
        await old.send(None, None, "GET", "/sse")
        await old.connection.head()
        await old.event()
        async with made.client(await made.session(LATEST), LATEST) as client:
            await client.open()
            await client.event()
            made.endpoint._legacy.tick(asyncio.get_running_loop().time())
            made.endpoint._sse.tick(0.0)
            for each in (client, old):
                assert (await each.connection.chunk()).startswith(b":")
