"""H8: a modern client cancels by closing its stream, a legacy one only by saying so; quiet streams are kept alive."""

import asyncio
import json
from pathlib import Path

import pytest

from polyplex.downstream.http import TICK_SECONDS
from polyplex.downstream.http_calls import KEEP_ALIVE_SECONDS
from tests.hard_cases.front import Front, http_front, modern
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, Stage, eventually, stage
from tests.process.endpoint_stage import Client, initialize, request

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
CANCELLED = "notifications/cancelled"


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comments on quiet streams at once; a connection that is gone is noticed by one of them at the latest."""
    assert KEEP_ALIVE_SECONDS + TICK_SECONDS <= 15
    monkeypatch.setattr("polyplex.downstream.http.TICK_SECONDS", 0.01)
    monkeypatch.setattr("polyplex.downstream.http_calls.KEEP_ALIVE_SECONDS", 0.0)


def held(on: Stage) -> list[Json]:
    """The calls of `hold` that have reached the server."""
    return [each for each in on.received("a", "tools/call") if each["params"]["name"] == "hold"]


async def send_call(front: Front) -> None:
    """A modern call that the server does not answer."""
    message, headers = modern("tools/call", name="a__hold", arguments={})
    body = json.dumps(message).encode()
    lines = dict([*headers, ("Accept", "application/json, text/event-stream")])
    await front.connection.request("POST", "/mcp", body, lines)


@ERAS
async def test_a_modern_client_that_closes_its_stream_has_cancelled(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on, http_front(on) as front:
        await on.up("a")
        await send_call(front)
        await eventually(lambda: held(on))
        front.connection.close()
        await eventually(lambda: on.received("a", CANCELLED))
        assert [each["params"]["requestId"] for each in on.received("a", CANCELLED)] == [held(on)[0]["id"]]


async def test_over_http_a_modern_server_sees_its_stream_close(tmp_path: Path) -> None:
    async with scripted_http(era="modern") as server, stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
        await on.up("a")
        async with http_front(on) as front:
            await send_call(front)
            await eventually(lambda: [each for each in server.script.held.values() if each])
            front.connection.close()
            async with asyncio.timeout(20):
                closed = await server.closed.get()
        assert [each[0] for each in server.script.held[""]] == [closed]
        assert [each for each in server.script.journal if each.get("method") == CANCELLED] == []


@ERAS
async def test_a_legacy_client_that_loses_its_connection_has_not_cancelled(
    tmp_path: Path, era: str, hurry: None
) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on, http_front(on) as front:
        client = Client(front.connection, None, None)
        session = (await client.post(initialize("2025-11-25"))).headers["mcp-session-id"]
        client.session = session
        await on.up("a")
        await client.send(request("tools/call", 5, name="a__hold", arguments={}))
        await eventually(lambda: held(on))
        await front.leave()
        second = on.modern()
        assert await second.value("a__release") == 1, "the server still holds the call"
        assert on.received("a", CANCELLED) == []


@ERAS
async def test_a_quiet_stream_is_kept_alive(tmp_path: Path, era: str, hurry: None) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on, http_front(on) as front:
        await on.up("a")
        await send_call(front)
        head = await front.connection.head()
        assert head.headers["content-type"] == "text/event-stream"
        for _ in range(3):
            assert (await front.connection.chunk()).startswith(b":"), "a comment, which is no message"
        await on.modern().value("a__release")
        chunk = b""
        while b"data:" not in chunk:
            chunk = await front.connection.chunk()
        assert json.loads(chunk.partition(b"data:")[2])["result"]["resultType"] == "complete"
