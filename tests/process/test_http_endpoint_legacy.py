"""The HTTP endpoint for legacy clients: sessions, streams that are taken up again, batches."""

import asyncio
import json

import pytest

from polyplex.downstream.session import Call
from polyplex.errors import RpcError
from polyplex.transports.exchange import Reply
from tests.process.conftest import LoopFactory
from tests.process.endpoint_stage import (
    NOTE,
    PREFIX,
    ScriptedGateway,
    Stage,
    http_endpoint,
    initialize,
    notification,
    request,
)
from tests.process.http_stage import until

LATEST = "2025-11-25"
OLD = "2025-03-26"


def asking(gateway: ScriptedGateway, *before: int) -> None:
    """Let tools/call send notes, and answer on `release`."""

    async def call(call: Call) -> Reply:
        for number in before:
            call.send(NOTE % number)
        return await gateway.wait(call)

    gateway.on["tools/call"] = call


def progress(events: list[dict[str, object]]) -> list[object]:
    """The notes among events, and the results."""
    frames: list[dict[str, dict[str, object]]] = [event["frame"] for event in events if "frame" in event]  # pyright: ignore[reportAssignmentType]
    return [frame["params"]["progress"] if "params" in frame else frame["result"] for frame in frames]


# -- sessions
async def test_a_session_from_its_begin_to_its_end(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client:
            assert (await client.post(notification("notifications/initialized"))).status == 202
            response = await client.post(request("tools/call", "a", x=1))
            assert json.loads(response.body) == {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}}
            assert response.headers["content-type"] == "application/json"
            assert (await client.post({"jsonrpc": "2.0", "id": 5, "result": {}})).status == 202
            await client.send(None, None, "DELETE")
            assert (await client.connection.response()).status == 200
            assert (await client.post(request("tools/call"))).status == 404
        assert [each[1] for each in stage.gateway.notices] == ["notifications/initialized"]
        assert [each.id for each in stage.gateway.ended] == [session]


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_session_that_is_missing_or_unknown(loop_factory: LoopFactory, method: str) -> None:
    body = request("tools/list") if method == "POST" else None
    async with http_endpoint() as stage:
        for session, status in ((None, 400), ("made-up", 404)):
            async with stage.client(session) as client:
                await client.send(body, None, method)
                response = await client.connection.response()
                assert response.status == status
                assert "initialize" in json.loads(response.body)["error"]["message"]
        assert not stage.gateway.calls


async def test_an_initialize_that_fails_begins_no_session(loop_factory: LoopFactory) -> None:
    async def fail(call: Call) -> Reply:
        return Reply.failure(-32602, "no")

    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["initialize"] = fail
        response = await client.post(initialize(LATEST))
        assert response.status == 200
        assert json.loads(response.body)["error"]["code"] == -32602
        assert not stage.endpoint._legacy._sessions
        assert len(stage.gateway.ended) == 1


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"{", 400, -32700),
        (b"[]", 400, -32600),
        (b'{"jsonrpc":"2.0","id":1}', 400, -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"a"}', 400, -32600),
        (notification("notifications/unusable"), 400, -32602),
        (notification("notifications/cancelled", requestId=99), 202, None),
    ],
)
async def test_messages_that_cannot_be_used(
    loop_factory: LoopFactory, body: object, status: int, code: int | None
) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(LATEST), LATEST) as client:
        response = await client.post(body)
        assert response.status == status
        assert code is None or json.loads(response.body)["error"]["code"] == code


async def test_text_in_arguments_makes_no_modern_request(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(LATEST), LATEST) as client:
        query = {PREFIX + "protocolVersion": "2026-07-28"}
        response = await client.post(request("tools/call", arguments=query, _meta={"a": PREFIX + "protocolVersion"}))
        assert json.loads(response.body)["result"]["arguments"] == query


async def test_the_same_id_twice_at_once(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as one, stage.client(session, LATEST) as other:
            await one.send(request("tools/call", 1))
            await until(lambda: len(stage.gateway.calls) == 2)
            assert json.loads((await other.post(request("tools/call", 1))).body)["error"]["code"] == -32600
            await other.send(request("tools/call", "1"))
            stage.gateway.release.set()
            assert json.loads((await one.connection.response()).body)["result"] == {"late": True}
            assert json.loads((await other.connection.response()).body)["id"] == "1"


async def test_a_cancelled_call_gets_no_response(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as one, stage.client(session, LATEST) as other:
            await one.send(request("tools/call", 1))
            await until(lambda: len(stage.gateway.calls) == 2)
            await other.post(notification("notifications/cancelled", requestId="1"))
            assert not stage.gateway.cancelled
            await other.post(notification("notifications/cancelled", requestId=1))
            await until(lambda: stage.gateway.cancelled)
            await one.connection.head()
            assert progress(await one.events()) == []


@pytest.mark.parametrize("why", ["the client ended the session", "polyplex is stopping"])
async def test_a_call_under_way_at_the_end_is_answered_once(loop_factory: LoopFactory, why: str) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway, 1)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as one, stage.client(session, LATEST) as other:
            await one.send(request("tools/call", 1))
            await one.connection.head()
            await (stage.endpoint.close() if "stopping" in why else other.send(None, None, "DELETE"))
            _, note, answer = await one.events()
            assert note["frame"]["method"] == "notifications/progress"
            assert why in answer["frame"]["result"]["content"][0]["text"]


async def test_a_client_that_leaves_does_not_cancel(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway, 1)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client:
            await client.send(request("tools/call", 1))
            await client.connection.head()
            await client.event()
        await until(lambda: not stage.endpoint._server._connections)
        stage.gateway.release.set()
        await until(lambda: not stage.endpoint.busy)
        assert not stage.gateway.cancelled


async def test_sessions_that_nobody_uses_end(loop_factory: LoopFactory) -> None:
    async with http_endpoint(session_idle_seconds=60.0) as stage:
        asking(stage.gateway)
        idle, listening, calling = [await stage.session(LATEST) for _ in range(3)]
        async with stage.client(listening, LATEST) as stream, stage.client(calling, LATEST) as call:
            await stream.open()
            await call.send(request("tools/call"))
            await until(lambda: len(stage.gateway.calls) == 4)
            now = asyncio.get_running_loop().time()
            stage.endpoint._legacy.tick(now + 50)
            assert not stage.gateway.ended
            stage.endpoint._legacy.tick(now + 100)
            assert [session.id for session in stage.gateway.ended] == [idle]
        await until(lambda: not stage.endpoint._legacy._streams)
        stage.gateway.release.set()
        await until(lambda: not stage.endpoint.busy)
        stage.endpoint._legacy.tick(now + 150)
        assert len(stage.gateway.ended) == 1, "an hour of listening or waiting is no idleness"
        stage.endpoint._legacy.tick(now + 200)
        assert {session.id for session in stage.gateway.ended} == {idle, listening, calling}


# -- the general stream
async def test_frames_of_no_call_come_on_the_general_stream(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        session = await stage.session(LATEST)
        held = stage.endpoint._legacy._sessions[session]
        held.send(NOTE % 1)
        async with stage.client(session, LATEST) as client:
            head = await client.open()
            assert head.headers["content-type"] == "text/event-stream"
            assert head.headers["mcp-session-id"] == session
            priming = await client.event()
            assert (priming["data"], "retry" in priming, "event" in priming) == ("", True, False)
            held.send(NOTE.replace(b",", b",\n") % 2)
            assert progress([await client.event(), await client.event()]) == [1, 2]


async def test_a_newer_stream_takes_the_place_of_an_older(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        session = await stage.session(LATEST)
        held = stage.endpoint._legacy._sessions[session]
        async with stage.client(session, LATEST) as older, stage.client(session, LATEST) as newer:
            await older.open()
            await older.event()
            await newer.open()
            await newer.event()
            assert await older.event() == {}
            held.send(NOTE % 1)
            assert progress([await newer.event()]) == [1]
            assert (await older.post(request("tools/call"))).status == 200, "its connection lives on"


async def test_the_general_stream_wants_to_be_accepted(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(LATEST), LATEST) as client:
        await client.send(None, {"Accept": "application/json"}, "GET")
        assert (await client.connection.response()).status == 406


@pytest.mark.parametrize("revision", [LATEST, OLD])
async def test_each_event_of_the_general_stream_comes_once(loop_factory: LoopFactory, revision: str) -> None:
    got: list[object] = []
    last: str | None = None
    async with http_endpoint() as stage:
        session = await stage.session(revision)
        held = stage.endpoint._legacy._sessions[session]
        for turn in range(4):
            held.send(NOTE % (turn * 10))  # while the client is away
            async with stage.client(session) as client:
                await client.open(last)
                held.send(NOTE % (turn * 10 + 1))
                for _ in range(3 if revision == LATEST else 2):
                    event = await client.event()
                    last = event["id"]
                    got += progress([event])
                if turn == 1:
                    held.send(NOTE % 15)  # sent, and lost with the connection
            await until(lambda: not stage.endpoint._legacy._streams)
            if turn == 1:
                async with stage.client(session) as client:
                    await client.open(last)
                    event = await client.event()
                    last = event["id"]
                    got += progress([event])
                await until(lambda: not stage.endpoint._legacy._streams)
    assert got == [0, 1, 10, 11, 15, 20, 21, 30, 31]


async def test_the_priming_event_leads_back_to_no_event_that_was_given_before(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        session = await stage.session(LATEST)
        held = stage.endpoint._legacy._sessions[session]
        last: str | None = None
        for turn in range(3):
            async with stage.client(session, LATEST) as client:
                await client.open(last)
                last = (await client.event())["id"]
                if turn == 0:
                    held.send(NOTE % 1)
                    last = (await client.event())["id"]
                if turn == 2:
                    held.send(NOTE % 2)
                    assert progress([await client.event()]) == [2]
            await until(lambda: not stage.endpoint._legacy._streams)


async def test_keep_alive_comments_on_the_general_stream(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(OLD)) as client:
        await client.open()
        assert await client.connection.chunk() == b": keep-alive\n\n"
        stage.endpoint._legacy.tick(0.0)
        assert await client.connection.chunk() == b": keep-alive\n\n"


async def test_the_stream_ends_with_the_session(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as stream, stage.client(session, LATEST) as client:
            await stream.open()
            await stream.event()
            await client.send(None, None, "DELETE")
            await client.connection.response()
            assert await stream.event() == {}


async def test_the_stream_ends_properly_at_shutdown(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(LATEST), LATEST) as stream:
        await stream.open()
        await stream.event()
        await stage.endpoint.close()
        assert await stream.event() == {}
        assert await stream.connection.rest() == b""


# -- calls whose stream breaks
async def broken(stage: Stage, session: str, revision: str = LATEST) -> str:
    """A call whose stream breaks after its first note; the id of that."""
    async with stage.client(session, revision) as client:
        await client.send(request("tools/call", 1))
        await client.connection.head()
        if revision == LATEST:
            priming = await client.event()
            assert (priming["data"], priming["retry"]) == ("", "1000")
        last = (await client.event())["id"]
    await until(lambda: not stage.endpoint._server._connections)
    return last


@pytest.mark.parametrize("revision", [LATEST, OLD])
async def test_a_result_that_came_while_the_client_was_away(loop_factory: LoopFactory, revision: str) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway, 1)
        session = await stage.session(revision)
        last = await broken(stage, session, revision)
        stage.gateway.calls[1].send(NOTE % 2)
        stage.gateway.release.set()
        await until(lambda: not stage.endpoint.busy)
        for _ in range(2):
            async with stage.client(session, revision) as client:
                await client.open(last)
                assert progress(await client.events()) == [2, {"late": True}]


async def test_a_call_goes_on_where_the_client_takes_it_up(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway, 1)
        session = await stage.session(LATEST)
        last = await broken(stage, session)
        stage.gateway.calls[1].send(NOTE % 2)
        async with stage.client(session, LATEST) as client:
            await client.open(last)
            assert progress([await client.event(), await client.event()]) == [2]
            stage.gateway.calls[1].send(NOTE % 3)
            for call in stage.endpoint._active:
                call.keep_alive(asyncio.get_running_loop().time() + 100)
            assert progress([await client.event()]) == [3]
            assert await client.connection.chunk() == b": keep-alive\n\n"
            stage.gateway.release.set()
            assert progress(await client.events()) == [{"late": True}]


async def test_taking_up_a_stream_that_still_lives_ends_the_old_one(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway, 1)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as one, stage.client(session, LATEST) as other:
            await one.send(request("tools/call", 1))
            await one.connection.head()
            await one.event()
            last = (await one.event())["id"]
            await other.open(last)
            assert await one.event() == {}
            stage.gateway.release.set()
            assert progress(await other.events()) == [{"late": True}]


async def test_only_the_events_of_its_own_stream(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway, 1)
        session = await stage.session(LATEST)
        last = await broken(stage, session)
        stage.endpoint._legacy._sessions[session].send(NOTE % 77)
        async with stage.client(session, LATEST) as other:
            await other.send(request("tools/call", 2))
            await other.connection.head()
            stage.gateway.release.set()
            assert progress(await other.events()) == [1, {"late": True}]
        async with stage.client(session, LATEST) as client:
            await client.open(last)
            assert progress(await client.events()) == [{"late": True}]


@pytest.mark.parametrize("last", ["made-up", "c9-1", "c1-99", "g-99", ""])
async def test_an_event_id_that_is_made_up_opens_the_general_stream(loop_factory: LoopFactory, last: str) -> None:
    async with http_endpoint() as stage:
        session = await stage.session(LATEST)
        stage.endpoint._legacy._sessions[session].send(NOTE % 1)
        async with stage.client(session, LATEST) as client:
            await client.open(last)
            assert progress([await client.event(), await client.event()]) == [1]


async def test_a_suspended_call_is_polled(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway)
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client:
            await client.send(request("tools/call", 1))
            await until(lambda: len(stage.gateway.calls) == 2)
            suspend = stage.gateway.calls[1].suspend
            assert suspend is not None
            suspend(2500)
            await client.connection.head()
            (priming,) = await client.events()
            assert priming["retry"] == "2500"
            suspend(2500)
            stage.gateway.calls[1].send(NOTE % 1)
            stage.gateway.release.set()
            await until(lambda: not stage.endpoint.busy)
            await client.open(priming["id"])
            assert progress(await client.events()) == [1, {"late": True}]


# -- batches
async def test_a_batch_is_answered_with_an_array(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(OLD)) as client:
        batch = [request("tools/call", 1, a=1), notification("notifications/x"), request("tools/call", "2", a=2)]
        response = await client.post(batch)
        answers = {answer["id"]: answer["result"] for answer in json.loads(response.body)}
        assert answers == {1: {"a": 1}, "2": {"a": 2}}
        assert (await client.post([notification("notifications/x")])).status == 202
        mixed = [request("initialize", 3), 5, {"jsonrpc": "2.0", "id": 4}, request("tools/call", 6)]
        answers = json.loads((await client.post(mixed)).body)
        assert sorted((answer["id"] or 0, "error" in answer) for answer in answers) == [
            (0, True), (0, True), (4, True), (6, False),
        ]  # fmt: skip


@pytest.mark.parametrize("revision", ["2025-06-18", LATEST])
async def test_batches_exist_in_one_revision_only(loop_factory: LoopFactory, revision: str) -> None:
    async with http_endpoint() as stage, stage.client(await stage.session(revision), revision) as client:
        response = await client.post([request("tools/call")])
        assert (response.status, json.loads(response.body)["error"]["code"]) == (400, -32600)


async def test_a_batch_holds_the_end_back_and_a_cancelled_member_is_left_out(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        asking(stage.gateway)
        session = await stage.session(OLD)
        async with stage.client(session) as client, stage.client(session) as other:
            await client.send([request("tools/call", 1), request("tools/call", 2)])
            await until(lambda: len(stage.gateway.calls) == 3)
            assert stage.endpoint.busy
            await other.post(notification("notifications/cancelled", requestId=1))
            stage.gateway.release.set()
            assert [answer["id"] for answer in json.loads((await client.connection.response()).body)] == [2]


# -- questions
async def test_a_question_to_the_client_and_its_answer(loop_factory: LoopFactory) -> None:
    async def ask(call: Call) -> Reply:
        answer = await call.session.ask("roots/list", None, call.send)
        return Reply(answer.result, answer.error)

    async with http_endpoint() as stage:
        stage.gateway.on["tools/call"] = ask
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client, stage.client(session, LATEST) as other:
            await client.send(request("tools/call", 1))
            await client.connection.head()
            await client.event()
            question = (await client.event())["frame"]
            assert question["method"] == "roots/list"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}
            assert (await other.post(answer)).status == 202
            assert (await other.post(answer)).status == 202
            assert [event["frame"]["result"] for event in await client.events()] == [{"roots": []}]


async def test_a_question_fails_when_the_client_ends_its_session(loop_factory: LoopFactory) -> None:
    failures: list[RpcError] = []

    async def ask(call: Call) -> Reply:
        try:
            await call.session.ask("roots/list", None, call.send)
        except RpcError as error:
            failures.append(error)
        except asyncio.CancelledError:
            failures.append(RpcError(0, "cancelled"))
            raise
        return Reply(b"{}")

    async with http_endpoint() as stage:
        stage.gateway.on["tools/list"] = ask
        session = await stage.session(LATEST)
        async with stage.client(session, LATEST) as client, stage.client(session, LATEST) as other:
            await client.send(request("tools/list", 1))
            await client.connection.head()
            await other.send(None, None, "DELETE")
            assert (await other.connection.response()).status == 200
            await until(lambda: failures)
