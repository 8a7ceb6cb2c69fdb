"""The HTTP server on real sockets, against raw clients that misbehave."""

import asyncio

import pytest

from polyplex.transports.http_request import Request, ResponseWriter
from polyplex.transports.http_server import HttpServer
from tests.process.conftest import LoopFactory
from tests.process.http_serving import GET, Stage, keep, serving
from tests.process.http_stage import DEADLINE_SECONDS, RawClient, raw_client, until


async def test_a_request_as_the_handler_sees_it(loop_factory: LoopFactory) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(
            b"POST /a%20b?c=d%20e HTTP/1.1\r\nHOST: localhost\r\nX-Two: 1 \r\nx-two:2\r\n", b"Content-Len"
        )
        await client.send(b"gth: 5\r\n\r\nhe", b"llo")
        assert (await client.response()).status == 200
    (request,) = stage.requests
    assert (request.method, request.path, request.query) == ("POST", "/a b", "c=d%20e")
    assert request.headers == {"host": "localhost", "x-two": "1, 2", "content-length": "5"}
    assert request.body == b"hello"
    assert request.duplicate is None
    assert request.answered


async def test_a_kept_connection_serves_request_after_request(loop_factory: LoopFactory) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        for number in (1, 2, 1, 2):
            await client.send(GET % number)
            response = await client.response()
            assert (response.status, response.body) == (200, b"/%d" % number)
            assert "connection" not in response.headers


async def test_equal_heads_with_other_bodies_are_told_apart(loop_factory: LoopFactory) -> None:
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"

    def echo(request: Request) -> None:
        request.respond_json((request.body, b"!"))

    async with serving(echo) as stage, raw_client(stage.port) as client:
        for sent in ([head + b"one"], [head + b"two"], [head, b"3rd"], [head + b"f", b"or"]):
            await client.send(*sent)
            assert (await client.response()).body == b"".join(sent)[-3:] + b"!"
        await client.send(head + b"fiv" + head + b"six", head + b"sev")
        assert [(await client.response()).body for _ in range(3)] == [b"fiv!", b"six!", b"sev!"]
        await client.send(head + b"8st" + b"garbage\r\n\r\n")
        assert (await client.response()).body == b"8st!"
        assert await client.rest() == b""


async def test_chunked_requests(loop_factory: LoopFactory) -> None:
    def echo(request: Request) -> None:
        request.respond(200, request.body)

    async with serving(echo) as stage, raw_client(stage.port) as client:
        await client.send(
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"2;x\r\nde\r\n"
        )
        await client.send(b"0\r\nTrailer: 1\r\n\r\n", GET % 2)
        assert (await client.response()).body == b"abcde"
        assert (await client.response()).body == b""


@pytest.mark.parametrize(
    ("sent", "said"),
    [(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "close"), (b"GET / HTTP/1.0\r\n\r\n", "close")],
)
async def test_a_client_that_wants_to_close_is_told_and_closed(
    loop_factory: LoopFactory, sent: bytes, said: str
) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(sent + GET % 2)
        response = await client.response()
        assert response.headers["connection"] == said
        assert await client.rest() == b""
        assert len(stage.requests) == 1


@pytest.mark.parametrize("answered", ["at once", "later"])
async def test_pipelined_requests_are_answered_in_order(loop_factory: LoopFactory, answered: str) -> None:
    async with serving(keep if answered == "later" else None) as stage, raw_client(stage.port) as client:
        await client.send(b"".join(GET % number for number in range(20)))
        for number in range(20 if answered == "later" else 0):
            request = await stage.request(number + 1)
            assert len(stage.requests) == number + 1, "one at a time"
            request.respond(200, request.target.encode())
        assert [(await client.response()).body for _ in range(20)] == [b"/%d" % number for number in range(20)]


async def test_very_many_pipelined_requests_need_no_stack(loop_factory: LoopFactory) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(b"".join(GET % number for number in range(5000)))
        for number in range(5000):
            assert (await client.response()).body == b"/%d" % number


async def test_too_many_pipelined_requests_close_after_those_that_were_taken(loop_factory: LoopFactory) -> None:
    async with serving(keep, pipelined=3) as stage, raw_client(stage.port) as client:
        await client.send(b"".join(GET % number for number in range(6)))
        for number in range(1, 7):
            (await stage.request(number)).respond(200)
        statuses = [(await client.response()).status for _ in range(6)]
        assert statuses == [200] * 6
        await client.send(GET % 7)
        assert await client.rest() == b""
        assert len(stage.requests) == 6


async def test_pipelined_bodies_are_bounded_in_sum(loop_factory: LoopFactory) -> None:
    post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 600\r\n\r\n" + b"x" * 600
    async with serving(keep, body_bytes=1000) as stage, raw_client(stage.port) as client:
        await client.send(post)
        await stage.request()
        await client.send(post, post)
        await until(lambda: any(each._refused for each in stage.server._connections))
        for number in range(1, 4):
            (await stage.request(number)).respond(200)
        assert (await client.rest()).count(b"HTTP/1.1 200 OK") == 3


async def test_an_offer_to_change_the_protocol_is_not_taken_up(loop_factory: LoopFactory) -> None:
    """As the HTTP client of Java makes it with its first request."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAA\r\n"
    post = b"POST /%d HTTP/1.1\r\nHost: a\r\n" + offer + b"Content-Length: 4\r\n\r\nbody"
    get = b"GET /%d HTTP/1.1\r\nHost: a\r\n" + offer + b"\r\n"
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(post % 1)
        assert (await client.response()).body == b"/1"
        await client.send(post % 2 + get % 3 + post[:-2] % 4, post[-2:], GET % 5)
        assert [(await client.response()).body for _ in range(4)] == [b"/2", b"/3", b"/4", b"/5"]
        assert [request.body for request in stage.requests] == [b"body", b"body", b"", b"body", b""]
        await client.send(get % 6 + b"\0binary\r\n\r\n")
        assert (await client.response()).body == b"/6"
        assert await client.rest() == b""


# -- responses
async def test_head_gets_no_body(loop_factory: LoopFactory) -> None:
    async with serving() as stage, raw_client(stage.port) as client:
        await client.send(b"HEAD /12345 HTTP/1.1\r\nHost: a\r\n\r\n" + GET % 2)
        head = await client.head()
        assert (head.status, head.headers["content-length"]) == (200, "6")
        assert (await client.response()).body == b"/2"
        assert len(stage.requests) == 2


@pytest.mark.parametrize("size", [10, 100_000])
async def test_json_in_parts(loop_factory: LoopFactory, size: int) -> None:
    def answer(request: Request) -> None:
        request.respond_json((b'"', b"x" * size, b'"'))

    async with serving(answer) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        response = await client.response()
        assert response.headers["content-type"] == "application/json"
        assert response.body == b'"' + b"x" * size + b'"'


async def test_an_event_stream(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        request = await stage.request()
        writer = request.respond_events(b"X-Extra: 1\r\n")
        head = await client.head()
        assert head.headers["content-type"] == "text/event-stream"
        assert head.headers["cache-control"] == "no-cache, no-transform"
        assert head.headers["x-accel-buffering"] == "no"
        assert head.headers["x-extra"] == "1"
        for piece in (b"data: 1\n\n", b"x" * 200_000):
            writer.write(piece)
            writer.write(b"")
            assert await client.chunk() == piece
        writer.end()
        writer.end()
        writer.write(b"late")
        assert await client.chunk() == b""
        await client.send(GET % 2)
        (await stage.request(2)).respond(200, b"ok")
        assert (await client.response()).body == b"ok"


async def test_a_body_that_cannot_be_completed_breaks_the_connection(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        writer = (await stage.request()).respond_sized(10)
        writer.write(b"01234")
        await client.head()
        writer.abort()
        assert len(await client.rest()) < 10


async def test_a_request_that_failed_inside(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        (await stage.request()).fail()
        assert (await client.response()).status == 500
        await client.send(GET % 2)
        request = await stage.request(2)
        request.respond_events()
        await client.head()
        request.fail()
        assert b"500" not in await client.rest()


async def test_only_the_first_answer_counts(loop_factory: LoopFactory) -> None:
    def twice(request: Request) -> None:
        request.respond(200, b"first")
        request.respond(200, b"second")
        assert request.respond_events().closed

    async with serving(twice) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1, GET % 2)
        assert [(await client.response()).body for _ in range(2)] == [b"first"] * 2


# -- clients that are slow, or leave
async def overfull(stage: Stage, client: RawClient) -> ResponseWriter:
    """A response whose client does not read, until its buffers are full."""
    client.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
    await client.send(GET % 1)
    writer = (await stage.request()).respond_events()
    while not writer.full:
        writer.write(bytes(1 << 20))
        await asyncio.sleep(0)
    return writer


async def test_a_slow_reader_is_noticed_and_its_writer_told_when_it_reads_on(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        writer = await overfull(stage, client)
        writable = asyncio.Event()
        writer.on_writable = writable.set
        client.writer.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
        reading = asyncio.create_task(client.reader.read(-1))
        async with asyncio.timeout(DEADLINE_SECONDS):
            await writable.wait()
        assert not writer.full
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


@pytest.mark.parametrize(("seconds", "limit"), [(70, 64 << 20), (0, 1000)])
async def test_a_reader_that_has_stopped_is_dropped(loop_factory: LoopFactory, seconds: float, limit: int) -> None:
    left: list[bool] = []
    async with serving(keep, write_buffer_bytes=limit) as stage, raw_client(stage.port) as client:
        writer = await overfull(stage, client)
        stage.requests[0].on_disconnect = lambda: left.append(True)
        stage.later(seconds)
        await until(lambda: left)
        assert writer.closed


async def test_a_client_that_leaves_is_noticed(loop_factory: LoopFactory) -> None:
    left: list[bool] = []
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1 + GET % 2)
        request = await stage.request()
        request.on_disconnect = lambda: left.append(True)
        client.close()
        await until(lambda: left)
        request.respond(200)
        assert not request.answered
        assert len(stage.requests) == 1, "what was to come next is dropped"


async def test_a_client_whose_answer_is_complete_is_not_reported_as_having_left(loop_factory: LoopFactory) -> None:
    left: list[bool] = []
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        request = await stage.request()
        request.on_disconnect = lambda: left.append(True)
        request.respond(200)
        await client.response()
        client.close()
        await until(lambda: not stage.server._connections)
        assert not left


async def test_a_half_closed_client_gets_the_answers_it_waits_for(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1 + GET % 2)
        await stage.request()
        client.writer.write_eof()
        (connection,) = stage.server._connections
        await until(lambda: connection._ready[0].close)
        stage.requests[0].respond(200, b"one")
        (await stage.request(2)).respond(200, b"two")
        assert [(await client.response()).body for _ in range(2)] == [b"one", b"two"]
        assert await client.rest() == b""


async def test_a_half_closed_client_whose_leaving_matters_has_left(loop_factory: LoopFactory) -> None:
    left: list[bool] = []
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        (await stage.request()).on_disconnect = lambda: left.append(True)
        client.writer.write_eof()
        await until(lambda: left)


# -- the end
async def test_draining_finishes_what_is_served_and_takes_nothing_new(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as busy, raw_client(stage.port) as idle:
        await idle.send(GET % 1)
        (await stage.request()).respond(200)
        await idle.response()
        await busy.send(GET % 2 + GET % 3)
        request = await stage.request(2)
        stage.server.stop_accepting()
        assert await idle.rest() == b""
        with pytest.raises(OSError):
            async with raw_client(stage.port):
                pass
        request.respond(200, b"done")
        assert (await busy.response()).body == b"done"
        assert await busy.rest() == b""
        assert len(stage.requests) == 2


async def test_what_was_written_before_the_end_arrives(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await client.send(GET % 1)
        writer = (await stage.request()).respond_events()
        writer.write(b"x" * 500_000)
        writer.end()
        await stage.server.close(DEADLINE_SECONDS)
        await client.head()
        assert await client.chunk() == b"x" * 500_000
        assert await client.chunk() == b""


async def test_the_end_does_not_wait_for_a_client_that_does_not_read(loop_factory: LoopFactory) -> None:
    async with serving(keep) as stage, raw_client(stage.port) as client:
        await overfull(stage, client)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await stage.server.close(0.05)
            await until(lambda: not stage.server._connections)


async def test_an_address_that_is_taken_is_an_error(loop_factory: LoopFactory) -> None:
    async with serving() as stage:
        with pytest.raises(OSError):
            await HttpServer(keep).start("127.0.0.1", stage.port)
