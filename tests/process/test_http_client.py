"""The HTTP client on real sockets, against a raw server that misbehaves."""

import asyncio

import pytest

from polyplex.transports import http_client
from polyplex.transports.http_client import MAX_HEADER_BYTES, HttpPool
from polyplex.transports.proxy import route_for
from tests.process.conftest import LoopFactory
from tests.process.http_stage import DEADLINE_SECONDS, Peer, Script, raw_server, until
from tests.process.http_taking import REQUEST, Taker, ask, echo, pool_to


def saying(*parts: bytes, close: bool = True) -> Script:
    """A server that reads a request and says the parts."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(*parts)
        if not close:
            await peer.gone()

    return script


async def test_a_connection_is_used_again(loop_factory: LoopFactory) -> None:
    async with raw_server(echo) as server, pool_to(server) as pool:
        assert [await ask(pool).outcome() for _ in range(5)] == [b"0"] * 5
        assert len(server.peers) == 1


async def test_requests_at_once_get_connections_of_their_own(loop_factory: LoopFactory) -> None:
    async with raw_server(echo) as server, pool_to(server) as pool:
        takers = [ask(pool) for _ in range(5)]
        assert {await taker.outcome() for taker in takers} == {b"0", b"1", b"2", b"3", b"4"}


async def test_requests_beyond_the_limit_wait_for_a_free_connection(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_CONNECTIONS", 3)
    async with raw_server(echo) as server, pool_to(server) as pool:
        takers = [ask(pool) for _ in range(50)]
        assert all([(await taker.outcome()) in (b"0", b"1", b"2") for taker in takers])
        assert len(server.peers) == 3


async def test_what_others_wait_for_has_connections_beyond_the_limit(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_CONNECTIONS", 2)
    monkeypatch.setattr(http_client, "RESERVED_CONNECTIONS", 1)
    answered = asyncio.Event()

    async def script(peer: Peer) -> None:
        """The usual requests are answered once all urgent ones have come."""
        while True:
            request = await peer.request()
            if request.path == "/urgent":
                urgent.append(peer.number)
                if len(urgent) == 5:
                    answered.set()
            else:
                await answered.wait()
            await peer.answer(b"ok")

    urgent: list[int] = []
    async with raw_server(script) as server, pool_to(server) as pool:
        usual = [ask(pool) for _ in range(9)]
        pressing = [Taker() for _ in range(5)]
        for taker in pressing:
            pool.request(REQUEST.replace(b" / ", b" /urgent "), b"", taker, urgent=True)
        assert [await taker.outcome() for taker in (*pressing, *usual)] == [b"ok"] * 14
        await until(lambda: len(pool._all) <= 2)
        assert len(pool._idle) == len(pool._all)


async def test_waiting_requests_survive_connections_that_cannot_be_had(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_CONNECTIONS", 2)
    async with raw_server(echo) as server:
        pass
    async with pool_to(server) as pool:
        takers = [ask(pool) for _ in range(9)]
        for taker in takers:
            assert f"cannot connect to 127.0.0.1:{server.port}" in str(await taker.outcome())
            assert taker.failure is not None
            assert not taker.failure.sent


async def test_waiting_requests_go_on_when_a_connection_is_lost(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_CONNECTIONS", 1)

    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number:
            await peer.answer(b"second")

    async with raw_server(script) as server, pool_to(server) as pool:
        first, second = ask(pool), ask(pool)
        assert await first.outcome() == "the connection closed before an answer"
        assert await second.outcome() == b"second"


async def test_a_withdrawn_request_is_never_sent(loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_CONNECTIONS", 1)
    release = asyncio.Event()
    seen: list[str] = []

    async def script(peer: Peer) -> None:
        while True:
            seen.append((await peer.request()).method)
            await release.wait()
            await peer.answer(b"ok")

    async with raw_server(script) as server, pool_to(server) as pool:
        first, withdrawn, third = ask(pool), ask(pool), ask(pool)
        await until(lambda: seen)
        pool.withdraw(withdrawn)
        release.set()
        assert await first.outcome() == await third.outcome() == b"ok"
        assert len(seen) == 2
        assert not withdrawn.endings
        assert not pool._cancelled


async def test_a_request_withdrawn_while_dialling_leaves_the_connection_to_the_next(loop_factory: LoopFactory) -> None:
    async with raw_server(echo) as server, pool_to(server) as pool:
        withdrawn = ask(pool)
        pool.withdraw(withdrawn)
        await until(lambda: pool._idle)
        assert await ask(pool).outcome() == b"0"
        assert not withdrawn.endings
        assert not pool._cancelled


async def test_closing_fails_what_is_queued_dialling_and_under_way(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_CONNECTIONS", 2)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with raw_server(script) as server, pool_to(server) as pool:
        under_way = ask(pool)
        await until(lambda: under_way.connection)
        dialling, queued = ask(pool), ask(pool)
        pool.close()
        late = ask(pool)
        outcomes = [await taker.outcome() for taker in (dialling, queued, late)]
        assert outcomes == ["the client is closed"] * 3
        assert await under_way.outcome() == "the connection closed before an answer"


@pytest.mark.parametrize(
    ("parts", "body"),
    [
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"], b"hello"),
        ([b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 5\r\n\r\nhe", b"l", b"lo"], b"hello"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], b""),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], b""),
        (
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n", b"3\r\nllo\r\n0\r\n", b"\r\n"],
            b"hello",
        ),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\n"], b"hello"),
        ([b"HTTP/1.1 200 OK\r\n\r\nhe", b"llo"], b"hello"),
        ([b"HTTP/1.0 200 OK\r\n\r\nhello"], b"hello"),
        (
            [b"HTTP/1.1 103 Early Hints\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"],
            b"ok",
        ),
        ([b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nok"], b"ok"),
        ([b"HTTP/1.1 200 OK\r\nUpgrade: h2\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nok"], b"ok"),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_bodies_of_every_form(
    loop_factory: LoopFactory, parts: list[bytes], body: bytes, streaming: bool
) -> None:
    async with raw_server(saying(*parts)) as server, pool_to(server) as pool:
        assert await ask(pool, streaming=streaming).outcome() == body


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ([], "the connection closed before an answer"),
        ([b"HTTP/1.1 2"], "the connection closed in the middle of the answer"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"], "the connection closed in the middle of the answer"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"], "the connection closed in the middle of the answer"),
        ([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n"], "in the middle of the answer"),
        ([b"SSH-2.0-OpenSSH_9.6\r\n"], "the server does not speak HTTP"),
        ([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"], "does not speak HTTP"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"], "does not speak HTTP"),
        ([b"HTTP/1.1 200 OK\r\nX: " + b"x" * MAX_HEADER_BYTES + b"\r\n\r\n"], "does not speak HTTP"),
        ([b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20)], "the headers of the answer are too large"),
    ],
)
async def test_answers_cut_short_or_unreadable(loop_factory: LoopFactory, parts: list[bytes], reason: str) -> None:
    async with raw_server(saying(*parts)) as server, pool_to(server) as pool:
        taker = ask(pool)
        assert reason in str(await taker.outcome())
        assert taker.failure is not None
        assert taker.failure.sent
        assert not pool._idle


async def test_a_body_that_ends_with_the_connection_is_cut_short_by_a_reset(loop_factory: LoopFactory) -> None:
    got = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await got.wait()
        peer.writer.get_extra_info("socket").setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER: reset
        peer.abort()

    async with raw_server(script) as server, pool_to(server) as pool:
        taker = ask(pool, streaming=True)
        await until(lambda: taker.pieces)
        got.set()
        assert "in the middle of the answer" in str(await taker.outcome())


@pytest.mark.parametrize(
    "surplus",
    [b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nstolen", b"HTTP/1.1 200 OK\r\nCont", b"H", b"rubbish"],
)
@pytest.mark.parametrize(
    "framing", ["Content-Length: 4\r\n\r\nmine", "Transfer-Encoding: chunked\r\n\r\n4\r\nmine\r\n0\r\n\r\n"]
)
async def test_a_second_answer_is_never_taken_for_that_to_the_next_request(
    loop_factory: LoopFactory, surplus: bytes, framing: str
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number:
            await peer.answer(b"new")
        else:
            await peer.say(f"HTTP/1.1 200 OK\r\nX: 1\r\n{framing}".encode() + surplus)
        await peer.gone()

    async with raw_server(script) as server, pool_to(server) as pool:
        first = ask(pool)
        assert await first.outcome() == b"mine"
        assert first.headers[b"x"] == b"1"
        assert first.headers.get(b"content-length", b"4") == b"4"
        assert await ask(pool).outcome() == b"new"


async def test_an_answer_that_nobody_asked_for_ends_an_idle_connection(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"%d" % peer.number)
        if not peer.number:
            await peer.answer(b"unasked", "408 Request Timeout")
            await peer.gone()

    async with raw_server(script) as server, pool_to(server) as pool:
        assert await ask(pool).outcome() == b"0"
        await until(lambda: not pool._all)
        assert await ask(pool).outcome() == b"1"


async def test_a_connection_that_the_server_closes_is_not_used_again(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"%d" % peer.number, extra="Connection: close\r\n")
        await peer.gone()

    async with raw_server(script) as server, pool_to(server) as pool:
        assert await ask(pool).outcome() == b"0"
        assert await ask(pool).outcome() == b"1"


async def test_an_idle_connection_that_the_server_closes_is_forgotten(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"%d" % peer.number)

    async with raw_server(script) as server, pool_to(server) as pool:
        assert await ask(pool).outcome() == b"0"
        await until(lambda: not pool._all)
        assert await ask(pool).outcome() == b"1"


async def test_an_aborted_exchange_hears_nothing_more(loop_factory: LoopFactory) -> None:
    gone = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        await peer.gone()
        gone.set()

    async with raw_server(script) as server, pool_to(server) as pool:
        taker = ask(pool, streaming=True)
        await until(lambda: taker.pieces)
        assert taker.connection is not None
        taker.connection.abort()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await gone.wait()
        assert not taker.endings


async def test_a_paused_taker_stops_the_server_and_the_connection_is_good_afterwards(loop_factory: LoopFactory) -> None:
    total, written = 64 << 20, 0

    async def script(peer: Peer) -> None:
        nonlocal written
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        while written < total:
            await peer.say(bytes(1 << 20))
            written += 1 << 20
        await echo(peer)

    class Pausing(Taker):
        def on_data(self, data: bytes) -> None:
            super().on_data(data)
            if len(self.pieces) == 1 and self.connection is not None:
                self.connection.pause()

    async with raw_server(script) as server, pool_to(server) as pool:
        taker = Pausing(streaming=True)
        pool.request(REQUEST, b"", taker)
        await until(lambda: taker.pieces)
        held, turns = -1, 0
        while turns < 50:  # until the server cannot write any more
            held, turns = written, turns + 1 if held == written else 0
            await asyncio.sleep(0.001)
        assert written < total // 2
        assert taker.connection is not None
        taker.connection.resume()
        body = await taker.outcome()
        assert len(body) == total
        assert await ask(pool).outcome() == b"0"


async def test_a_connection_paused_on_its_last_piece_is_good_afterwards(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"x" * 100_000)
        await echo(peer)

    class Pausing(Taker):
        def on_data(self, data: bytes) -> None:
            super().on_data(data)
            if sum(map(len, self.pieces)) == 100_000 and self.connection is not None:
                self.connection.pause()

    async with raw_server(script) as server, pool_to(server) as pool:
        taker = Pausing(streaming=True)
        pool.request(REQUEST, b"", taker)
        assert len(await taker.outcome()) == 100_000
        assert await ask(pool).outcome() == b"0"


async def test_large_requests_arrive_whole(loop_factory: LoopFactory) -> None:
    sent = bytes(range(256)) * 20_000
    seen: list[bytes] = []

    async def script(peer: Peer) -> None:
        seen.append((await peer.request()).body)
        await peer.answer(b"ok")

    async with raw_server(script) as server, pool_to(server) as pool:
        taker = Taker()
        pool.request(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(sent), sent, taker)
        assert await taker.outcome() == b"ok"
        assert seen == [sent]


# -- dialling
@pytest.mark.parametrize("host", ["a..b", "x" * 80 + ".example"])
async def test_what_cannot_be_a_host_name_fails_the_request(loop_factory: LoopFactory, host: str) -> None:
    pool = HttpPool(route_for(f"http://{host}:1/"), None, 5.0)
    taker = ask(pool)
    assert f"cannot connect to {host}:1" in str(await taker.outcome())
    pool.close()
