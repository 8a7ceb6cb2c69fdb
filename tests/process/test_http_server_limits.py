"""The HTTP server's limits and refusals, against raw clients that overstep them."""

import pytest

from polyplex.transports import http_server
from tests.process.conftest import LoopFactory
from tests.process.http_serving import GET, keep, serving
from tests.process.http_stage import raw_client, until


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"rubbish\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400),
        (b"GET / HTTP/9.9\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 2000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X-%d: 1\r\n" * 12 % tuple(range(12)) + b"\r\n", 431),
        (b"GET /" + b"x" * 2000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 20), 431),
        (b"GET /" + b"x" * (1 << 20), 431),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * (1 << 20), 431),
        (b"POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n" + b"x" * 4_000_000, 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n", 413),
    ],
)
async def test_what_breaks_the_rules_or_limits_is_answered_and_closed(
    loop_factory: LoopFactory, sent: bytes, status: int
) -> None:
    async with serving(header_bytes=1000, headers=10, body_bytes=1000) as stage, raw_client(stage.port) as client:
        client.writer.write(sent)
        response = await client.response()
        assert response.status == status
        assert response.headers["connection"] == "close"
        assert response.headers["content-type"] == "text/plain"
        assert await client.rest() == b""
        assert not stage.requests


async def test_a_refused_client_that_does_not_leave_is_left(loop_factory: LoopFactory) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(b"rubbish\r\n\r\n")
        assert (await client.response()).status == 400
        stage.later(http_server.LINGER_SECONDS / 2)
        assert stage.server._connections
        stage.later(http_server.LINGER_SECONDS * 2)
        await until(lambda: not stage.server._connections)


async def test_requests_before_a_malformed_one_are_served(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1 + GET % 2 + b"rubbish\r\n\r\n")
        (await stage.request(1)).respond(200, b"one")
        (await stage.request(2)).respond(200, b"two")
        assert (await client.response()).body == b"one"
        response = await client.response()
        assert (response.body, response.headers["connection"]) == (b"two", "close")
        assert await client.rest() == b""


@pytest.mark.parametrize(
    "name", ["Host", "Authorization", "Content-Type", "Origin", "Mcp-Name", "MCP-Protocol-Version"]
)
async def test_a_routing_header_that_comes_twice_is_noted(loop_factory: LoopFactory, name: str) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        for _ in range(2):
            await client.send(f"GET / HTTP/1.1\r\n{name}: a\r\n{name}: b\r\n\r\n".encode())
            await client.response()
        assert [request.duplicate for request in stage.requests] == [name.lower()] * 2


async def test_too_many_connections(loop_factory: LoopFactory) -> None:
    async with serving(connections=2) as stage, raw_client(stage.port) as first, raw_client(stage.port) as second:
        for client in (first, second):
            await client.send(GET % 1)
            await client.response()
        async with raw_client(stage.port) as third:
            assert (await third.response()).status == 503
            assert await third.rest() == b""
        first.close()
        await until(lambda: len(stage.server._connections) == 1)
        async with raw_client(stage.port) as fourth:
            await fourth.send(GET % 4)
            assert (await fourth.response()).status == 200


# -- time
@pytest.mark.parametrize(
    "sent", [b"GET / HT", b"GET / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nslow"]
)
async def test_a_request_that_takes_too_long_to_arrive_is_refused(loop_factory: LoopFactory, sent: bytes) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(sent)
        await until(lambda: [each for each in stage.server._connections if each._next is not None])
        stage.later(0)
        stage.later(29)
        assert stage.server._connections
        stage.later(31)
        assert (await client.response()).status == 408
        assert await client.rest() == b""


async def test_a_byte_now_and_then_does_not_keep_a_request_alive(loop_factory: LoopFactory) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n")
        (connection,) = stage.server._connections
        await until(lambda: connection._next is not None)
        for number in range(3):
            stage.later(number * 14)
            await client.send(b"x")
            await until(lambda count=number: connection._size == count + 1)
        stage.later(31)
        assert (await client.response()).status == 408


async def test_a_large_body_is_granted_the_time_that_a_slow_line_needs(loop_factory: LoopFactory) -> None:
    size = 4 << 20
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size, bytes(size - 1))
        (connection,) = stage.server._connections
        await until(lambda: connection._size == size - 1)
        stage.later(0)
        stage.later(200)
        await client.send(b"x")
        assert (await client.response()).status == 200


async def test_an_idle_connection_is_closed_after_a_while(loop_factory: LoopFactory) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        await client.response()
        stage.later(100)
        assert stage.server._connections
        stage.later(130)
        assert await client.rest() == b""


async def test_a_request_may_be_served_for_as_long_as_it_takes(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        request = await stage.request()
        stage.later(100_000)
        request.respond(200, b"late")
        assert (await client.response()).body == b"late"


async def test_the_sweep_runs_by_itself(loop_factory: LoopFactory) -> None:
    async with serving(request_seconds=0.0) as stage, raw_client(stage.port) as client:
        await client.send(b"GET / HT")
        assert (await client.response()).status == 408


# -- Expect
async def test_a_client_that_asks_first_is_told_to_go_on(loop_factory: LoopFactory) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: %d\r\n\r\n"
    async with serving(body_bytes=1000) as stage, raw_client(stage.port) as client:
        for _ in range(2):
            await client.send(head % 3)
            assert (await client.head()).status == 100
            await client.send(b"abc")
            assert (await client.response()).status == 200
        await client.send(head % 2000)
        assert (await client.response()).status == 413


async def test_no_100_breaks_into_the_response_before(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        writer = (await stage.request()).respond_sized(10)
        writer.write(b"01234")
        await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
        (connection,) = stage.server._connections
        await until(lambda: connection._next is not None)
        writer.write(b"56789")
        writer.end()
        assert (await client.response()).body == b"0123456789"
        await client.send(b"abc")
        (await stage.request(2)).respond(200, b"ok")
        assert (await client.response()).body == b"ok"
