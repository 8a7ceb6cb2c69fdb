import asyncio
import json

import pytest
from msgspec import Raw

from polyplex.downstream.calls import Batch, ended_reply, gathered, response_frame, run_call, whole_reply
from polyplex.downstream.session import MAX_CALLS, Call, Session
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import Era
from polyplex.transports.body import BodyStream
from polyplex.transports.exchange import Exchange, Reply


class Source:
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def abort(self) -> None: ...


class ScriptedGateway:
    """Answers by what the method says."""

    def __init__(self) -> None:
        self.exchange: Exchange | None = None

    async def handle(self, call: Call) -> Reply:
        match call.params:
            case b'"fail"':
                raise LookupError("a mistake")
            case b'"exchange"':
                self.exchange = Exchange(asyncio.get_running_loop(), b"1", "tools/call", None)
                return await self.exchange
            case b'"task"':
                await asyncio.sleep(0)
                async with asyncio.timeout(5):
                    await asyncio.sleep(0)
                return Reply(b"1")
            case b'"never"':
                await asyncio.Event().wait()
            case _:
                pass
        return Reply(b"1")

    def notified(self, session: Session, method: str, params: bytes | None) -> None: ...
    def closed(self, session: Session) -> None: ...


class Outcomes:
    """What became of calls."""

    def __init__(self) -> None:
        self.session = Session(Era.LEGACY, "2025-11-25", http=False)
        self.gateway = ScriptedGateway()
        self.frames: list[dict[str, object]] = []
        self.unanswered: list[bytes] = []
        self.changed = asyncio.Event()

    def start(self, how: str = "", identifier: bytes = b"1", method: str = "tools/call") -> Call:
        message = Message(id=Raw(identifier), method=method, params=Raw(json.dumps(how).encode()))
        call = Call(self.session, message, lambda frame: None)
        run_call(self.gateway, call, self._answer, self._unanswered)
        return call

    def _answer(self, call: Call, reply: Reply) -> None:
        self.frames.append(json.loads(response_frame(call, reply)))
        self.changed.set()

    def _unanswered(self, call: Call) -> None:
        self.unanswered.append(call.id)
        self.changed.set()

    async def wait(self) -> None:
        async with asyncio.timeout(5):
            await self.changed.wait()
        self.changed.clear()


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("how", ["", "task"])
async def test_a_call_is_answered_and_forgotten(how: str, method: str) -> None:
    on = Outcomes()
    on.start(how, method=method)
    await on.wait()
    assert on.frames == [{"jsonrpc": "2.0", "id": 1, "result": 1}]
    assert not on.session.calls


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
async def test_a_mistake_of_ours_is_an_internal_error(method: str, caplog: pytest.LogCaptureFixture) -> None:
    on = Outcomes()
    on.start("fail", method=method)
    await on.wait()
    assert on.frames[0]["error"] == {"code": -32603, "message": "polyplex failed; its log says more"}
    assert "a mistake" in caplog.text


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("how", ["never", "exchange"])
@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_a_stopped_call_gets_no_answer(how: str, method: str, rounds: int) -> None:
    on = Outcomes()
    call = on.start(how, method=method)
    for _ in range(rounds):
        await asyncio.sleep(0)
    call.stop()
    await on.wait()
    assert (on.frames, on.unanswered) == ([], [b"1"])
    assert not on.session.calls
    call.stop()


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("how", ["never", "exchange", "task"])
@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_a_call_that_is_ended_gets_one_answer_that_says_why(how: str, method: str, rounds: int) -> None:
    on = Outcomes()
    call = on.start(how, method=method)
    for _ in range(rounds):
        await asyncio.sleep(0)
    answered = bool(on.frames)
    call.stop("polyplex is stopping")
    assert len(on.frames) == 1, "at once"
    assert answered or "polyplex is stopping" in json.dumps(on.frames[0])
    assert not on.session.calls
    call.stop("polyplex is stopping")
    call.stop()
    for _ in range(5):
        await asyncio.sleep(0)
    assert (len(on.frames), on.unanswered) == (1, [])


@pytest.mark.parametrize("server", [None, "docs"])
@pytest.mark.parametrize("era", Era)
def test_the_answer_of_a_call_that_is_ended(era: Era, server: str | None) -> None:
    def reply(method: str) -> Reply:
        call = Call(Session(era, "x", http=True), Message(id=Raw(b"1"), method=method), lambda frame: None)
        call.server = server
        return ended_reply(call, "why")

    result = json.loads(reply("tools/call").result or b"")
    error = json.loads(reply("tools/list").error or b"")
    assert result["isError"] is True
    assert result.get("resultType") == ("complete" if era is Era.MODERN else None)
    assert (error["code"], error.get("data")) == (-32603, {"server": "docs"} if server else None)
    for text in (result["content"][0]["text"], error["message"]):
        assert ": why." in text
        assert ("'docs'" in text) is bool(server)


async def test_a_call_goes_on_in_the_moment_its_exchange_is_settled() -> None:
    on = Outcomes()
    on.start("exchange")
    assert on.gateway.exchange is not None
    on.gateway.exchange.resolve(Reply(b"2"))
    assert on.frames == [{"jsonrpc": "2.0", "id": 1, "result": 2}], "without a round of the event loop"


async def test_an_id_in_use_and_too_many_calls() -> None:
    on = Outcomes()
    calls = [on.start("never", b"%d" % number) for number in range(MAX_CALLS)]
    on.start("", b"5")
    on.start("", b'"5"')
    assert [frame["error"]["code"] for frame in on.frames] == [-32600, -32603]  # pyright: ignore[reportIndexIssue]
    assert len(on.session.calls) == MAX_CALLS
    on.session.close()
    while len(on.unanswered) < len(calls):
        await on.wait()


async def test_a_stream_read_whole_loses_the_end_of_its_envelope() -> None:
    stream = BodyStream(Source(), b'{"a":1}} ', 9)
    stream.finish(None)
    assert (await gathered(Reply(stream=stream))).result == b'{"a":1}'
    plain = Reply(b"1")
    assert await gathered(plain) is plain


async def test_a_stream_cut_short_is_an_error() -> None:
    stream = BodyStream(Source(), b'{"a', 9)
    stream.finish(ConnectionError("gone"))
    reply = await whole_reply(Reply(stream=stream))
    assert b"cut short: gone" in (reply.error or b"")


def test_a_reply_of_nothing_is_an_error() -> None:
    call = Call(Session(Era.LEGACY, "", http=False), Message(id=Raw(b"1"), method="a"), lambda frame: None)
    assert json.loads(response_frame(call, Reply()))["error"]["code"] == -32603


@pytest.mark.parametrize(("frames", "whole"), [([b"1", None, b"2"], b"[1,2]"), ([None, None], None), ([b"1"], b"[1]")])
def test_a_batch_leaves_together(frames: list[bytes | None], whole: bytes | None) -> None:
    left: list[bytes | None] = []
    batch = Batch(len(frames), left.append)
    for frame in frames:
        assert not left
        batch.add(frame)
    assert left == [whole]


async def test_a_batch_waits_for_a_stream() -> None:
    left: list[bytes | None] = []
    done = asyncio.Event()
    batch = Batch(2, lambda frame: (left.append(frame), done.set())[0])
    call = Call(Session(Era.LEGACY, "", http=False), Message(id=Raw(b"7"), method="a"), lambda frame: None)
    stream = BodyStream(Source(), b"[1", 4)
    batch.answer(call, Reply(stream=stream))
    batch.unanswered(call)
    assert not left
    stream.feed(b"]}")
    stream.finish(None)
    async with asyncio.timeout(5):
        await done.wait()
    assert json.loads(left[0] or b"") == [{"jsonrpc": "2.0", "id": 7, "result": [1]}]
