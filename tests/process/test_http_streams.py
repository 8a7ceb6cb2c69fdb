"""Streamable HTTP, client half: event streams, taking broken ones up again, and the session's own stream."""

import asyncio
import json

import pytest

from polyplex.transports import http_sinks
from tests.process.conftest import LoopFactory
from tests.process.http_stage import DEADLINE_SECONDS, Peer, Received, Script, until
from tests.process.http_upstream import LEGACY, MODERN, event, result, settled, upstream

NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":%d}}'
SLOW_RETRY = b"retry: 60000\ndata:\n\n"
QUICK_RETRY = b"retry: 1\nid: p\ndata:\n\n"


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 7, 10_000])
async def test_every_line_end_and_every_cut(loop_factory: LoopFactory, end: bytes, size: int) -> None:
    lines = [b": hello", b"event: message", b"data: " + NOTE % 1, b"", b"event: other", b"data: {}", b""]
    lines += [b"data:" + result()[:11], b"data: " + result()[11:], b"", b""]
    stream = end.join(lines)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.events(*(stream[start : start + size] for start in range(0, len(stream), size)))

    async with upstream(script) as on:
        assert (await on.call()).result == b'{"ok":true}'
        assert len(on.listener.frames) == 2, "events of another name are nobody's"


@pytest.mark.parametrize("framing", ["Content-Length: {size}\r\n", "Connection: close\r\n"])
async def test_streams_that_are_not_chunked(loop_factory: LoopFactory, framing: str) -> None:
    stream = event(NOTE % 1) + event(result())

    async def script(peer: Peer) -> None:
        await peer.request()
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n{framing.format(size=len(stream))}"
        )
        await peer.say(head.encode() + b"\r\n", stream[:20], stream[20:])

    async with upstream(script) as on:
        assert (await on.call()).result == b'{"ok":true}'
        assert len(on.listener.frames) == 2


async def test_a_large_event_in_many_pieces(loop_factory: LoopFactory) -> None:
    text = '"' + "x" * 5_000_000 + '"'

    async def script(peer: Peer) -> None:
        await peer.request()
        frame = event(result(text=text))
        await peer.events(*(frame[start : start + 50_000] for start in range(0, len(frame), 50_000)))

    async with upstream(script) as on:
        assert (await on.call(streamable=True)).result == text.encode()


@pytest.mark.parametrize("revision", [None, MODERN, "2024-11-05"])
async def test_a_stream_that_ends_without_an_answer_is_a_loss_where_nothing_can_be_resumed(
    loop_factory: LoopFactory, revision: str | None
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.events(event(NOTE % 1, "a"))

    async with upstream(script, revision) as on:
        assert await on.failure() == "UpstreamLost: docs: the event stream ended without an answer"


async def test_a_legacy_stream_without_event_ids_cannot_be_resumed(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.events(event(NOTE % 1))

    async with upstream(script, LEGACY) as on:
        assert await on.failure() == "UpstreamLost: docs: the event stream ended without an answer"


async def test_a_broken_stream_is_taken_up_where_it_broke(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []

    async def script(peer: Peer) -> None:
        while True:
            seen.append(await peer.request())
            match len(seen):
                case 1:
                    await peer.events(QUICK_RETRY, event(NOTE % 1, "one"), b"id: two\n", end=False)
                    return  # in the middle of an event, which is lost
                case 2:
                    await peer.events(event(NOTE % 2, "three"))
                case _:
                    await peer.events(event(NOTE % 3, "four"), event(result()), end=False)
                    await peer.gone()

    async with upstream(script, LEGACY) as on:
        assert (await on.call()).result == b'{"ok":true}'
        assert [json.loads(frame).get("params", {}).get("progress") for frame in on.listener.frames] == [1, 2, 3, None]
        assert on.listener.polled == [1]
    assert [request.method for request in seen] == ["POST", "GET", "GET"]
    assert [request.headers.get("last-event-id") for request in seen] == [None, "one", "three"]
    assert seen[1].headers["accept"] == "text/event-stream"


async def test_the_server_asks_to_be_polled(loop_factory: LoopFactory) -> None:
    count = 0

    async def script(peer: Peer) -> None:
        nonlocal count
        while True:
            await peer.request()
            count += 1
            await peer.events(QUICK_RETRY if count < 4 else event(result()))

    async with upstream(script, LEGACY) as on:
        assert (await on.call()).result == b'{"ok":true}'
        assert on.listener.polled == [1]
        assert len(on.server.peers) == 1


@pytest.mark.parametrize("status", ["404 Not Found", "405 Method Not Allowed", "500 Oops"])
async def test_a_stream_that_cannot_be_taken_up_again_is_a_loss(loop_factory: LoopFactory, status: str) -> None:
    async def script(peer: Peer) -> None:
        while True:
            if (await peer.request()).method == "POST":
                await peer.events(QUICK_RETRY)
            else:
                await peer.answer(b"", status)

    async with upstream(script, LEGACY) as on:
        said = await on.failure()
        assert said == f"UpstreamLost: docs: the stream could not be taken up again: HTTP {status[:3]}"


async def test_a_stream_that_breaks_again_and_again_is_given_up(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sinks, "LEAST_RETRY_SECONDS", 0.0)
    monkeypatch.setattr(http_sinks, "MAX_IDLE_RESUMES", 3)
    count = 0

    async def script(peer: Peer) -> None:
        nonlocal count
        if (await peer.request()).method == "POST":
            await peer.events(QUICK_RETRY)
        else:
            count += 1
            await peer.events(end=False)

    async with upstream(script, LEGACY) as on:
        assert await on.failure() == "UpstreamLost: docs: the stream broke and could not be taken up again"
        await until(lambda: count == 3)  # the last attempt may have been refused before its script saw it


async def test_giving_up_a_call_whose_stream_ended_leaves_the_connection_to_others(loop_factory: LoopFactory) -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.events(b"retry: 60000\nid: p\ndata:\n\n")
        await peer.request()
        await go_on.wait()
        await peer.answer(result(2))
        await peer.gone()

    async with upstream(script, LEGACY) as on:
        first = on.start()
        await until(lambda: on.listener.polled)
        second = on.start()
        on.client.abandon(first)
        go_on.set()
        assert (await settled(second)).result == b'{"ok":true}'
        assert len(on.server.peers) == 1
        assert not on.client._pool._cancelled


async def test_giving_up_a_call_closes_the_stream_that_was_taken_up_again(loop_factory: LoopFactory) -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.events(QUICK_RETRY)
        await peer.request()
        await peer.events(event(NOTE % 1, "x"), end=False)
        await peer.gone()
        left.set()

    async with upstream(script, LEGACY) as on:
        exchange = on.start()
        await on.listener.until(lambda: on.listener.frames)
        on.client.abandon(exchange)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await left.wait()
        assert not exchange.done()


async def test_a_server_that_keeps_an_answered_stream_open_is_left_after_a_while(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sinks, "LINGER_SECONDS", 0.05)
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.events(event(result()), event(NOTE % 1), event(NOTE % 2), end=False)
        await peer.gone()
        left.set()

    async with upstream(script) as on:
        assert (await on.call()).result
        async with asyncio.timeout(DEADLINE_SECONDS):
            await left.wait()
        assert len(on.listener.frames) == 3


# -- the session's own stream
def session_server(seen: list[Received], *gets: list[bytes] | str) -> Script:
    """A server whose GETs are answered one by one as `gets` say: a status, or the events of a stream that ends."""
    left = list(gets)

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            seen.append(request)
            if request.method != "GET":
                await peer.answer(result(json.loads(request.body)["id"]))
                continue
            what = left.pop(0) if left else None
            if isinstance(what, str):
                await peer.answer(b"", what)
            elif isinstance(what, list):
                await peer.events(*what)
            else:
                await peer.events(end=False)
                await peer.gone()

    return script


def gets(seen: list[Received]) -> list[str | None]:
    """The `Last-Event-ID` of each GET."""
    return [request.headers.get("last-event-id") for request in seen if request.method == "GET"]


async def test_the_stream_of_the_session_is_opened_anew_after_its_end(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []
    script = session_server(seen, [QUICK_RETRY, event(NOTE % 1, "a")], [event(NOTE % 2)], "503 Busy", "502 Bad")
    async with upstream(script, LEGACY) as on:
        on.client.listen()
        on.client.listen()
        await until(lambda: len(seen) == 5)
        assert gets(seen) == [None, "a", "a", "a", "a"]
        assert len(on.listener.frames) == 2


@pytest.mark.parametrize("status", ["405 Method Not Allowed", "404 Not Found", "400 Bad Request"])
async def test_a_server_without_such_a_stream_is_not_asked_again(loop_factory: LoopFactory, status: str) -> None:
    seen: list[Received] = []
    async with upstream(session_server(seen, status), LEGACY) as on:
        on.client.listen()
        await until(lambda: seen and not on.client._timers)
        assert (await on.call()).error is None
        assert len(gets(seen)) == 1


@pytest.mark.parametrize("revision", [None, MODERN])
async def test_no_stream_is_opened_outside_of_a_legacy_session(loop_factory: LoopFactory, revision: str | None) -> None:
    seen: list[Received] = []
    async with upstream(session_server(seen), revision) as on:
        on.client.listen()
        await on.call()
    assert not gets(seen)


async def test_a_server_that_wants_its_stream_opened_at_once_is_not_hammered(loop_factory: LoopFactory) -> None:
    at: list[float] = []

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            at.append(asyncio.get_running_loop().time())
            await peer.events(b"retry: 0\ndata:\n\n")

    async with upstream(script, LEGACY) as on:
        on.client.listen()
        await until(lambda: len(at) == 3)
    assert at[2] - at[0] > 1.5 * http_sinks.LEAST_RETRY_SECONDS


async def test_failures_without_end_never_end_the_attempts(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []
    async with upstream(session_server(seen, "503 Busy"), LEGACY) as on:
        on.client.listen()
        await until(lambda: on.client._timers)
        listener = on.client._listener
        assert listener is not None
        listener._idle = 5000
        listener.again()
        delays = [timer.when() - asyncio.get_running_loop().time() for timer in on.client._timers]
        assert 50 < max(delays) < 61


async def test_the_time_that_the_server_asks_for_is_never_cut(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []
    async with upstream(session_server(seen, [b"retry: 100000\ndata:\n\n"]), LEGACY) as on:
        on.client.listen()
        await until(lambda: on.client._timers)
        (timer,) = on.client._timers
        assert 90 < timer.when() - asyncio.get_running_loop().time() < 101


async def test_a_stream_that_breaks_the_rules_is_left_and_opened_anew(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_sinks, "MAX_MESSAGE_BYTES", 1000)
    seen: list[Received] = []
    script = session_server(seen, [QUICK_RETRY, b"data: " + b"x" * 5000], [event(NOTE % 1)])
    async with upstream(script, LEGACY) as on:
        on.client.listen()
        await on.listener.until(lambda: on.listener.frames)
        assert gets(seen)[:2] == [None, "p"]


async def test_closing_ends_the_stream_of_the_session_while_it_waits_to_be_opened(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []
    async with upstream(session_server(seen, [SLOW_RETRY]), LEGACY) as on:
        on.client.listen()
        await until(lambda: on.client._timers)
    assert len(gets(seen)) == 1
