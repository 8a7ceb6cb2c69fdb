"""The HTTP endpoint: streams that break at bad moments, and what is no longer kept of them."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from polyplex.downstream.event_store import EventOptions
from polyplex.downstream.session import Call
from polyplex.transports.exchange import Reply
from tests.process.conftest import LoopFactory
from tests.process.endpoint_stage import NOTE, Client, Stage, http_endpoint, request
from tests.process.http_stage import until

LATEST = "2025-11-25"
RESUMABLE = ("2025-03-26", "2025-06-18", LATEST)
Event = dict[str, Any]


class Held:
    """A call that says what the test lets it say, and the ids of its session."""

    def __init__(self, stage: Stage, session: str, revision: str) -> None:
        self.stage, self.session, self.revision = stage, session, revision
        self.result = b'{"late":true}'
        self.asked: list[Reply] = []
        stage.gateway.on["tools/call"] = self._wait

    async def _wait(self, call: Call) -> Reply:
        await self.stage.gateway.release.wait()
        return Reply(self.result)

    @property
    def call(self) -> Call:
        return self.stage.gateway.calls[-1]

    def note(self, number: int) -> None:
        self.call.send(NOTE % number)

    async def end(self) -> None:
        self.stage.gateway.release.set()
        await until(lambda: not self.stage.endpoint.busy)

    async def begin(self) -> str:
        """Begin the call, send one note, and break the connection; the id of the note."""
        async with self.stage.client(self.session, self.revision) as client:
            await client.send(request("tools/call", 1))
            await until(lambda: self.call.method == "tools/call")
            self.note(0)
            await client.connection.head()
            while "frame" not in (event := await client.event()):
                pass
        await until(lambda: not self.stage.endpoint._server._connections)
        return event["id"]

    async def again(self, last: str) -> list[Event]:
        """Take the stream up, to its end."""
        async with self.stage.client(self.session, self.revision) as client:
            await client.open(last)
            return await client.events()


async def held(stage: Stage, revision: str = LATEST) -> Held:
    return Held(stage, await stage.session(revision), revision)


def told(events: list[Event]) -> list[object]:
    """Progress, results and errors, in order."""
    frames: list[Event] = [event["frame"] for event in events if "frame" in event]
    return [frame["params"]["progress"] if "params" in frame else frame.get("result", "error") for frame in frames]


async def next_frame(client: Client) -> Event:
    """The next event that is no priming event."""
    while "frame" not in (event := await client.event()):
        assert event, "the stream has ended"
    return event


async def comments(client: Client) -> list[bytes]:
    """The comments of a stream, to its end."""
    found: list[bytes] = []
    while chunk := await client.connection.chunk():
        if chunk.startswith(b":"):
            found.append(chunk.strip())
    return found


# -- what is kept
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_ten_breaks_and_every_event_once(loop_factory: LoopFactory, revision: str) -> None:
    async with http_endpoint() as stage:
        call = await held(stage, revision)
        last, got = await call.begin(), [0]
        for turn in range(1, 11):
            call.note(turn * 10)
            async with stage.client(call.session, revision) as client:
                await client.open(last)
                event = await next_frame(client)
                call.note(turn * 10 + 1)
                for _ in range(turn % 2):
                    got += [event["frame"]["params"]["progress"]]
                    event = await next_frame(client)
                got += [event["frame"]["params"]["progress"]]
                last = event["id"]
            await until(lambda: not stage.endpoint._server._connections)
        await call.end()
        events = await call.again(last)
        got += told(events)
        assert got == [0, *(turn * 10 + each for turn in range(1, 11) for each in (0, 1)), {"late": True}]


async def test_events_that_come_during_the_replay_come_after_it(loop_factory: LoopFactory, tmp_path: Path) -> None:
    """The frames are read from the database meanwhile, and the client reads slowly."""
    events = EventOptions(memory_bytes=10_000_000, database=tmp_path / "state.db")
    async with http_endpoint(events=events) as stage:
        call = await held(stage)
        last = await call.begin()
        padding = " " * 900_000
        note = NOTE.decode().replace("{", "{" + padding, 1).encode()
        for number in range(1, 21):
            call.call.send(note % number)
            await asyncio.sleep(0)
        async with stage.client(call.session, LATEST) as client:
            await client.open(last)
            first = await next_frame(client)
            call.note(21)
            call.note(22)
            rest = [await client.event() for _ in range(21)]
            await call.end()
            assert told([first, *rest, *await client.events()]) == [*range(1, 23), {"late": True}]


async def test_a_large_result_waits_in_the_database(loop_factory: LoopFactory, tmp_path: Path) -> None:
    events = EventOptions(database=tmp_path / "state.db")
    async with http_endpoint(events=events) as stage:
        call = await held(stage)
        call.result = b'{"text":"%b"}' % (b"x" * 3_000_000)
        last = await call.begin()
        await call.end()
        for _ in range(2):
            assert told(await call.again(last)) == [{"text": "x" * 3_000_000}]


async def test_one_that_takes_a_stream_up_in_the_middle_of_a_replay_has_it(
    loop_factory: LoopFactory, tmp_path: Path
) -> None:
    events = EventOptions(memory_bytes=50_000, database=tmp_path / "state.db")
    async with http_endpoint(events=events) as stage:
        call = await held(stage)
        last = await call.begin()
        for number in range(1, 100):
            call.note(number)
            await asyncio.sleep(0)
        async with stage.client(call.session, LATEST) as one, stage.client(call.session, LATEST) as other:
            await one.open(last)
            await other.open(last)
            given = await one.events()
            assert told(given) == list(range(1, len(given))), "up to where the other came, and then its end"
            await call.end()
            assert told(await other.events()) == [*range(1, 100), {"late": True}]


async def test_a_client_that_leaves_in_the_middle_of_a_replay(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        last = await call.begin()
        for number in range(1, 12):
            call.call.send(NOTE.replace(b"{", b"{" + b" " * 1_000_000, 1) % number)
        async with stage.client(call.session, LATEST) as client:
            await client.open(last)
            await client.event()
        await until(lambda: not stage.endpoint._server._connections)
        await call.end()
        assert told(await call.again(last)) == [*range(1, 12), {"late": True}]


async def test_a_question_on_a_broken_stream_is_put_again_and_answered(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        last = await call.begin()
        asking = asyncio.create_task(call.call.session.ask("roots/list", None, call.call.send))
        await asyncio.sleep(0)
        questions: list[Event] = []
        for _ in range(2):
            async with stage.client(call.session, LATEST) as client:
                await client.open(last)
                questions.append((await next_frame(client))["frame"])
            await until(lambda: not stage.endpoint._server._connections)
        assert [each["method"] for each in questions] == ["roots/list"] * 2
        async with stage.client(call.session, LATEST) as client:
            answer = {"jsonrpc": "2.0", "id": questions[0]["id"], "result": {"roots": []}}
            assert (await client.post(answer)).status == 202
        assert json.loads((await asking).result or b"") == {"roots": []}
        await call.end()


async def test_what_came_on_another_stream_is_not_replayed(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        last = await call.begin()
        async with stage.client(call.session, LATEST) as general:
            await general.open()
            start = (await general.event())["id"]
            await call.end()
            stage.endpoint._legacy._sessions[call.session].send(NOTE % 5)
            assert told([await general.event()]) == [5]
        await until(lambda: not stage.endpoint._server._connections)
        async with stage.client(call.session, LATEST) as general:
            await general.open(start)
            assert told([await general.event()]) == [5]
        assert told(await call.again(last)) == [{"late": True}]


# -- what is not kept
async def test_a_gap_is_told_and_the_result_is_not_in_it(loop_factory: LoopFactory) -> None:
    events = EventOptions(max_bytes=8 * 50_000, memory_bytes=50_000)
    async with http_endpoint(events=events) as stage:
        call = await held(stage)
        call.result = b'{"text":"%b"}' % (b"x" * 20_000)
        last = await call.begin()
        for number in range(1, 201):
            call.note(number)
        await call.end()
        log = stage.endpoint._legacy._sessions[call.session].event_log()
        for number in range(200):
            log.append(log.general, NOTE % number)
        assert told(await call.again(last)) == [json.loads(call.result)]
        async with stage.client(call.session, LATEST) as client:
            await client.open(last)
            assert await comments(client) == [b": events that are no longer kept: 200"]


async def test_a_result_that_waited_too_long_leaves_an_error(loop_factory: LoopFactory) -> None:
    events = EventOptions(max_age_seconds=60.0)
    async with http_endpoint(events=events) as stage:
        call = await held(stage)
        last = await call.begin()
        await call.end()
        stage.endpoint._legacy._logs.tick(asyncio.get_running_loop().time() + 61)
        _, answer = await call.again(last)
        assert answer["frame"]["id"] == 1
        assert "no longer kept" in answer["frame"]["error"]["message"]


async def test_a_stream_of_which_nothing_is_kept_is_refused(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyplex.downstream.event_store.STREAMS", 3)
    async with http_endpoint() as stage:
        call = await held(stage)
        last = await call.begin()
        await call.end()
        log = stage.endpoint._legacy._sessions[call.session].event_log()
        for _ in range(3):
            log.finish(log.open_stream())
        async with stage.client(call.session, LATEST) as client:
            for gone in (last, last + "0", log.general[:-1] + "c99-1"):
                await client.send(None, {"Accept": "text/event-stream", "Last-Event-ID": gone}, "GET")
                response = await client.connection.response()
                assert response.status == 400
                assert "Last-Event-ID" in json.loads(response.body)["error"]["message"]


async def test_an_id_of_another_session_opens_the_general_stream_and_shows_nothing(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        last = await call.begin()
        other = await stage.session(LATEST)
        async with stage.client(other, LATEST) as client:
            await client.open(last)
            assert (await client.event())["data"] == ""
            await call.end()
            stage.endpoint._legacy._sessions[other].send(NOTE % 9)
            assert told([await client.event()]) == [9]


async def test_a_session_that_ended_while_its_stream_was_asked_for(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        last = await call.begin()
        session = stage.endpoint._legacy._sessions[call.session]
        session.closed = True
        async with stage.client(call.session, LATEST) as client:
            await client.send(None, {"Accept": "text/event-stream", "Last-Event-ID": last}, "GET")
            assert (await client.connection.response()).status == 404
        session.closed = False
        await call.end()


async def test_a_client_that_has_everything_is_told_so(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        last = await call.begin()
        await call.end()
        last = (await call.again(last))[-1]["id"]
        async with stage.client(call.session, LATEST) as client:
            await client.send(None, {"Accept": "text/event-stream", "Last-Event-ID": last}, "GET")
            assert (await client.connection.response()).status == 400


# -- how a stream begins
@pytest.mark.parametrize("revision", RESUMABLE)
async def test_a_call_that_takes_its_time_can_be_taken_up(loop_factory: LoopFactory, revision: str) -> None:
    async with http_endpoint() as stage:
        call = await held(stage, revision)
        async with stage.client(call.session, revision) as client:
            await client.send(request("tools/call", 1))
            await until(lambda: call.call.method == "tools/call")
            (active,) = stage.endpoint._active
            active.keep_alive(active._since + 0.9)
            assert active._writer is None
            active.keep_alive(active._since + 1.1)
            assert (active._writer is not None) == (revision == LATEST)
            active.keep_alive(active._since + 100)
            await client.connection.head()
            last = (await client.event())["id"] if revision == LATEST else None
        await until(lambda: not stage.endpoint._server._connections)
        await call.end()
        if last is not None:
            assert told(await call.again(last)) == [{"late": True}]


async def test_nothing_is_kept_for_a_client_that_was_told_of_no_stream(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        async with stage.client(call.session, LATEST) as client:
            await client.send(request("tools/call", 1))
            await until(lambda: call.call.method == "tools/call")
            client.connection.reset()
        await until(lambda: not stage.endpoint._server._connections)
        call.note(1)
        for active in stage.endpoint._active:
            active.keep_alive(asyncio.get_running_loop().time() + 100)
        session = stage.endpoint._legacy._sessions[call.session]
        assert session._log is None
        await call.end()
        assert session._log is None


async def test_the_oldest_revision_has_no_event_ids(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage, "2024-11-05")
        async with stage.client(call.session) as client, stage.client(call.session) as general:
            await client.send(request("tools/call", 1))
            await until(lambda: call.call.method == "tools/call")
            call.note(1)
            await client.connection.head()
            assert "id" not in await client.event()
            await general.open("made-up-1")
            stage.endpoint._legacy._sessions[call.session].send(NOTE % 2)
            assert "id" not in await general.event()
            await call.end()


async def test_a_stream_that_is_closed_in_the_middle_says_when_to_come_again(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage:
        call = await held(stage)
        async with stage.client(call.session, LATEST) as client:
            await client.send(request("tools/call", 1))
            await until(lambda: call.call.method == "tools/call")
            call.note(1)
            suspend = call.call.suspend
            assert suspend is not None
            suspend(3500)
            await client.connection.head()
            priming, note, end = await client.events()
            assert (priming["retry"], told([note]), end["retry"], end["id"]) == ("1000", [1], "3500", note["id"])
            call.note(2)
            await call.end()
            await client.open(end["id"])
            assert told(await client.events()) == [2, {"late": True}]
