"""The HTTP endpoint: sessions that get a new id, belong to one caller, and end."""

import asyncio
import json
import logging

import pytest

from polyplex.downstream import legacy_http, session_table, sse
from polyplex.downstream.session import Call
from polyplex.transports.body import stream_of
from polyplex.transports.exchange import Reply
from polyplex.transports.http_request import Request
from tests.process.conftest import LoopFactory
from tests.process.endpoint_stage import NOTE, Client, Stage, http_endpoint, initialize, notification, request
from tests.process.http_stage import until

LATEST = "2025-11-25"
ROTATE = {"Mcp-Session-Rotate": "1"}


def holding(stage: Stage, *before: int) -> None:
    """Let tools/call send notes, and answer on `release`."""

    async def call(call: Call) -> Reply:
        for number in before:
            call.send(NOTE % number)
        return await stage.gateway.wait(call)

    stage.gateway.on["tools/call"] = call


async def status(stage: Stage, session: str | None) -> int:
    async with stage.client(session, LATEST) as client:
        return (await client.post(request("tools/list"))).status


async def rotated(client: Client) -> str:
    response = await client.post(request("tools/list"), ROTATE)
    assert response.status == 200
    return response.headers["mcp-session-id"]


# -- a new id
async def test_a_new_id_works_at_once_and_the_old_one_for_a_while(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with http_endpoint() as stage:
        old = await stage.session(LATEST)
        async with stage.client(old, LATEST) as client:
            new = await rotated(client)
        assert new != old
        assert (await status(stage, new), await status(stage, old)) == (200, 200)
        monkeypatch.setattr(session_table, "GRACE_SECONDS", 0.0)
        async with stage.client(new, LATEST) as client:
            newest = await rotated(client)
        assert [await status(stage, each) for each in (newest, new)] == [200, 404]
        stage.endpoint._legacy.tick(asyncio.get_running_loop().time() + 60)
        assert [await status(stage, each) for each in (newest, old)] == [200, 404]
        assert not stage.gateway.ended, "the session itself went on all the time"


async def test_the_new_id_comes_with_every_kind_of_answer(loop_factory: LoopFactory) -> None:
    large = b'{"text":"%b"}' % (b"x" * 600_000)

    async def answer(call: Call) -> Reply:
        return Reply(stream=stream_of(memoryview(large)))

    async with http_endpoint() as stage:
        stage.gateway.on["resources/read"] = answer
        session = await stage.session("2025-03-26")
        async with stage.client(session) as client:
            for body in (
                request("tools/list"),
                notification("notifications/x"),
                [request("tools/list", 2)],
                [notification("notifications/x")],
                request("resources/read", 3),
            ):
                response = await client.post(body, ROTATE)
                assert response.status in (200, 202)
                client.session = response.headers["mcp-session-id"]
            assert json.loads(response.body)["result"]["text"] == "x" * 600_000
            assert await status(stage, client.session) == 200


async def test_calls_and_streams_under_way_survive_a_new_id(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_table, "GRACE_SECONDS", 0.0)
    async with http_endpoint() as stage:
        holding(stage, 1)
        old = await stage.session(LATEST)
        held = stage.endpoint._legacy._sessions[old]
        async with stage.client(old, LATEST) as general, stage.client(old, LATEST) as calling:
            await general.open()
            await general.event()
            await calling.send(request("tools/call", 1))
            await calling.connection.head()
            _, note = [await calling.event() for _ in range(2)]
            async with stage.client(old, LATEST) as client:
                new = await rotated(client)
            assert await status(stage, old) == 404
            held.send(NOTE % 7)
            assert (await general.event())["frame"]["params"]["progress"] == 7
            async with stage.client(new, LATEST) as elsewhere:
                await elsewhere.open(note["id"])
                stage.gateway.release.set()
                _, answer = await elsewhere.events()
                assert answer["frame"]["result"] == {"late": True}


@pytest.mark.parametrize("headers", [{}, {"Mcp-Session-Rotate": "0"}, {"Mcp-Session-Rotate": ""}])
async def test_no_new_id_for_a_client_that_does_not_ask(loop_factory: LoopFactory, headers: dict[str, str]) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(LATEST), LATEST) as client:
        assert "mcp-session-id" not in (await client.post(request("tools/list"), headers)).headers


async def test_an_old_id_gets_no_other_new_id_once_that_is_in_use(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        old = await stage.session(LATEST)
        async with stage.client(old, LATEST) as thief:
            lost, new = await rotated(thief), await rotated(thief)
            assert (await status(stage, lost), await status(stage, new)) == (404, 200)
            assert "mcp-session-id" not in (await thief.post(request("tools/list"), ROTATE)).headers


# -- whose it is
async def test_a_session_is_not_there_for_another_caller(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def caller_of(request: Request) -> str:
        return request.headers.get("x-caller", "nobody")

    monkeypatch.setattr(legacy_http, "caller_of", caller_of)
    monkeypatch.setattr(sse, "caller_of", caller_of)
    mine, other = {"X-Caller": "me"}, {"X-Caller": "other"}
    async with http_endpoint() as stage, stage.client() as client:
        client.session = (await client.post(initialize(LATEST), mine)).headers["mcp-session-id"]
        client.revision = LATEST
        for headers in (other, {}, other | ROTATE):
            assert (await client.post(request("tools/list"), headers)).status == 404
            for method in ("GET", "DELETE"):
                await client.send(None, headers, method)
                assert (await client.connection.response()).status == 404
        assert (await client.post(request("tools/list"), mine)).status == 200
        async with stage.client() as old:
            await old.send(None, mine, "GET", "/sse")
            await old.connection.head()
            path = (await old.event())["data"]
            assert (await client.post(request("tools/list"), other, path)).status == 404
            assert (await client.post(request("tools/list"), mine, path)).status == 202


async def test_session_ids_are_not_logged(loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with http_endpoint() as stage:
        holding(stage, 1)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client, stage.client(session, LATEST) as other:
            await client.send(request("tools/call", 1))
            await client.connection.head()
            new = await rotated(other)
            await other.post(b"{")
            await other.send(None, None, "DELETE")
            await other.connection.response()
    assert session not in caplog.text
    assert new not in caplog.text


# -- its end
@pytest.mark.parametrize("streaming", [True, False])
async def test_a_session_that_its_client_deserted_ends_with_its_calls(
    loop_factory: LoopFactory, streaming: bool
) -> None:
    async with http_endpoint(session_idle_seconds=60.0) as stage:
        holding(stage, *([1] if streaming else []))
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client:
            await client.send(request("tools/call", 1))
            await until(lambda: len(stage.gateway.calls) == 2)
            now = asyncio.get_running_loop().time()
            stage.endpoint._legacy.tick(now + 100)
            client.connection.reset()
        await until(lambda: not stage.endpoint._server._connections)
        stage.endpoint._legacy.tick(now + 150)
        assert not stage.gateway.ended, "there was somebody until a moment ago"
        stage.endpoint._legacy.tick(now + 200)
        assert [each.id for each in stage.gateway.ended] == [session]
        await until(lambda: stage.gateway.cancelled)
        assert await status(stage, session) == 404


async def test_a_client_that_came_back_to_its_call_is_there(loop_factory: LoopFactory) -> None:
    async with http_endpoint(session_idle_seconds=60.0) as stage:
        holding(stage, 1)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client:
            await client.send(request("tools/call", 1))
            await client.connection.head()
            priming = await client.event()
        async with stage.client(session, LATEST) as client:
            await client.open(priming["id"])
            assert [(await client.event())["data"] == "" for _ in range(2)] == [True, False]
            now = asyncio.get_running_loop().time()
            for seconds in (100, 200, 300):
                stage.endpoint._legacy.tick(now + seconds)
            assert not stage.gateway.ended
            stage.gateway.release.set()
            assert len(await client.events()) == 1


async def test_the_end_of_a_session_cancels_its_calls(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        holding(stage, 1)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client:
            await client.send(request("tools/call", 1))
            await client.connection.head()
        await until(lambda: not stage.endpoint._server._connections)
        assert not stage.gateway.cancelled
        async with stage.client(session, LATEST) as client:
            await client.send(None, None, "DELETE")
            assert (await client.connection.response()).status == 200
        await until(lambda: stage.gateway.cancelled)


async def test_there_are_not_too_many_sessions(loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legacy_http, "MAX_SESSIONS", 2)
    async with http_endpoint() as stage:
        first, _ = [await stage.session(LATEST) for _ in range(2)]
        async with stage.client(first, LATEST) as client:
            new = await rotated(client)
            assert (await client.post(initialize(LATEST))).status == 503
            client.session = new
            await client.send(None, None, "DELETE")
            assert (await client.connection.response()).status == 200
        assert await status(stage, first) == 404
        await stage.session(LATEST)
