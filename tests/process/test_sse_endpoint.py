"""HTTP+SSE, server half, with a scripted gateway."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from polyplex.downstream.session import Call
from polyplex.transports.body import BodyStream
from polyplex.transports.exchange import Reply
from tests.process.conftest import LoopFactory
from tests.process.endpoint_stage import Client, Stage, http_endpoint, initialize, notification, request
from tests.process.http_stage import Received, until


class Streams:
    """The stream of one client, and a connection for its posts."""

    def __init__(self, stream: Client, posts: Client, endpoint: str) -> None:
        self.stream, self.posts, self.endpoint = stream, posts, endpoint

    async def post(self, body: object) -> Received:
        return await self.posts.post(body, path=self.endpoint)

    async def frame(self) -> dict[str, object]:
        event = await self.stream.event()
        assert event["event"] == "message"
        return event["frame"]


@asynccontextmanager
async def streams(stage: Stage) -> AsyncGenerator[Streams]:
    async with stage.client() as stream, stage.client() as posts:
        head = await stream.open(path="/sse")
        assert head.headers["content-type"] == "text/event-stream"
        event = await stream.event()
        assert event["event"] == "endpoint"
        assert event["data"].startswith("/messages/?session_id=")
        yield Streams(stream, posts, event["data"])


async def test_answers_come_on_the_stream(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, streams(stage) as on:
        assert (await on.post(initialize("2024-11-05"))).status == 202
        assert (await on.frame())["result"] == {"protocolVersion": "2024-11-05"}
        assert (await on.post(notification("notifications/initialized"))).status == 202
        assert (await on.post(request("tools/call", "x", a=1))).body == b"Accepted"
        assert await on.frame() == {"jsonrpc": "2.0", "id": "x", "result": {"a": 1}}
        assert stage.gateway.notices[0][1] == "notifications/initialized"


async def test_frames_of_no_call_and_questions(loop_factory: LoopFactory) -> None:
    async def ask(call: Call) -> Reply:
        answer = await call.session.ask("roots/list", None, call.send)
        return Reply(answer.result, answer.error)

    async with http_endpoint() as stage, streams(stage) as on:
        stage.gateway.on["tools/call"] = ask
        await on.post(request("tools/call", 1))
        question = await on.frame()
        stage.gateway.calls[0].session.send(b'{"jsonrpc":"2.0",\n"method":"notifications/x"}')
        assert (await on.frame())["method"] == "notifications/x"
        await on.post({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert (await on.frame())["result"] == {"roots": []}


async def test_a_cancelled_call_gets_no_response(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, streams(stage) as on:
        stage.gateway.on["tools/call"] = stage.gateway.wait
        await on.post(request("tools/call", 1))
        await on.post(request("tools/call", 2))
        await until(lambda: len(stage.gateway.calls) == 2)
        await on.post(notification("notifications/cancelled", requestId=1))
        await on.post(notification("notifications/unusable"))
        stage.gateway.release.set()
        assert (await on.frame())["id"] == 2
        assert stage.gateway.cancelled[0].id == b"1"


async def test_the_end_of_the_stream_is_the_end_of_the_session(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client() as other:
        stage.gateway.on["tools/call"] = stage.gateway.wait
        async with streams(stage) as on:
            await on.post(request("tools/call", 1))
            await until(lambda: stage.gateway.calls)
            assert stage.endpoint.busy
        await until(lambda: stage.gateway.cancelled)
        assert len(stage.gateway.ended) == 1
        assert (await other.post(request("tools/call"), path=on.endpoint)).status == 404


@pytest.mark.parametrize("path", ["/messages/", "/messages/?session_id=", "/messages/?session_id=made-up", "/messages"])
async def test_a_session_that_is_none(loop_factory: LoopFactory, path: str) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        assert (await client.post(request("tools/call"), path=path)).status == 404


@pytest.mark.parametrize(
    ("body", "code"), [(b"{", -32700), (b'{"jsonrpc":"2.0","id":1}', -32600), ([{"jsonrpc": "2.0"}], -32600)]
)
async def test_what_is_no_message(loop_factory: LoopFactory, body: object, code: int) -> None:
    async with http_endpoint() as stage, streams(stage) as on:
        response = await on.post(body)
        assert (response.status, json.loads(response.body)["error"]["code"]) == (400, code)


async def test_batches_of_the_one_revision_that_has_them(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, streams(stage) as on:
        await on.post(initialize("2025-03-26"))
        await on.frame()
        await on.post([request("tools/call", 1), notification("notifications/x"), {"jsonrpc": "2.0"}])
        data = (await on.stream.event())["data"]
        assert sorted("error" in answer for answer in json.loads(data)) == [False, True]
        await on.post([notification("notifications/x")])
        await on.post(request("tools/call", 2))
        assert (await on.frame())["id"] == 2


async def test_a_large_result_is_gathered_and_one_cut_short_is_an_error(loop_factory: LoopFactory) -> None:
    class Source:
        def pause(self) -> None: ...
        def resume(self) -> None: ...
        def abort(self) -> None: ...

    bodies = [BodyStream(Source(), b'"x', 10), BodyStream(Source(), b'"x', 10)]

    async def large(call: Call) -> Reply:
        return Reply(stream=bodies[int(call.id)])

    async with http_endpoint() as stage, streams(stage) as on:
        stage.gateway.on["tools/call"] = large
        await on.post(request("tools/call", 0))
        bodies[0].feed(b'yz"}')
        bodies[0].finish(None)
        assert (await on.frame())["result"] == "xyz"
        await on.post(request("tools/call", 1))
        bodies[1].finish(ConnectionError("gone"))
        assert "cut short: gone" in str((await on.frame())["error"])


async def test_keep_alive_comments_and_a_proper_end(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, streams(stage) as on:
        stage.endpoint._sse.tick(asyncio.get_running_loop().time())
        assert await on.stream.connection.chunk() == b": keep-alive\n\n"
        await stage.endpoint.close()
        assert await on.stream.connection.chunk() == b""
