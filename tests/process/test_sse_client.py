"""HTTP+SSE, client half, against a raw server."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from polyplex.errors import UpstreamUnavailable
from polyplex.protocol import jsonrpc
from polyplex.transports.exchange import Exchange
from polyplex.transports.sse import SseClient
from polyplex.transports.streamable_http import HttpEndpoint
from tests.process.conftest import LoopFactory
from tests.process.http_stage import DEADLINE_SECONDS, Peer, Received, Script, raw_server, until
from tests.process.http_upstream import Listener, event, result, settled

ENDPOINT = b"event: endpoint\ndata: %b\n\n"


class Session:
    """A server's session: the stream, and what was posted."""

    def __init__(self, endpoint: str = "/messages/?session_id=a", post_status: str = "202 Accepted") -> None:
        self.endpoint, self.post_status = endpoint, post_status
        self.stream: Peer | None = None
        self.streams: list[Received] = []
        self.posts: list[Received] = []

    async def __call__(self, peer: Peer) -> None:
        while True:
            request = await peer.request()
            if request.method == "GET":
                self.stream = peer
                self.streams.append(request)
                await peer.events(ENDPOINT % self.endpoint.encode(), end=False)
                await peer.gone()
                return
            self.posts.append(request)
            await peer.answer(b"Accepted", self.post_status, "text/plain")

    async def send(self, frame: bytes) -> None:
        assert self.stream is not None
        await self.stream.event(event(frame))


class Client:
    """The client, and what it hears."""

    def __init__(self, client: SseClient, listener: Listener) -> None:
        self.client, self.listener = client, listener

    def start(self, identifier: int = 1) -> Exchange:
        """Send a request."""
        exchange = Exchange(asyncio.get_running_loop(), b"%d" % identifier, "tools/call", None)
        self.listener.exchanges[exchange.id] = exchange
        self.client.send(jsonrpc.request(exchange.id, "tools/call", None), exchange)
        return exchange


@asynccontextmanager
async def sse_client(script: Script, path: str = "/sse", seconds: float = 5.0) -> AsyncGenerator[Client]:
    async with raw_server(script) as server:
        url = f"http://127.0.0.1:{server.port}{path}"
        listener = Listener()
        client = SseClient(HttpEndpoint("docs", url, {"X-Key": "s"}, connect_timeout=seconds))
        try:
            async with asyncio.timeout(DEADLINE_SECONDS):
                await client.open(listener)
            yield Client(client, listener)
        finally:
            await client.close()
            await until(lambda: not client._pool._all)


async def refusal(script: Script, seconds: float = 5.0) -> str:
    """Why the client cannot connect."""
    with pytest.raises(UpstreamUnavailable) as caught:
        async with sse_client(script, seconds=seconds):
            pass
    return caught.value.message


async def test_a_call_goes_by_post_and_its_answer_comes_on_the_stream(loop_factory: LoopFactory) -> None:
    server = Session()
    async with sse_client(server) as on:
        exchange = on.start()
        await until(lambda: server.posts)
        await server.send(result())
        assert (await settled(exchange)).result == b'{"ok":true}'
        assert not on.client.cancels_by_closing
    (stream,), (post,) = server.streams, server.posts
    assert stream.headers["accept"] == "text/event-stream"
    assert stream.headers["x-key"] == post.headers["x-key"] == "s"
    assert post.first == "POST /messages/?session_id=a HTTP/1.1"
    assert post.headers["content-type"] == "application/json"
    assert json.loads(post.body) == {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


@pytest.mark.parametrize(
    ("endpoint", "path"),
    [
        ("/messages?session_id=a", "/messages?session_id=a"),
        ("messages?session_id=a", "/x/messages?session_id=a"),
        ("?session_id=a", "/x/sse?session_id=a"),
        ("../m", "/m"),
        ("http://127.0.0.1:{port}/m", "/m"),
        ("//127.0.0.1:{port}/m", "/m"),
        (" /m ", "/m"),
        ("/m a\u00e9", "/m%20a%C3%A9"),
    ],
)
async def test_the_endpoint_is_resolved_against_the_url_of_the_stream(
    loop_factory: LoopFactory, endpoint: str, path: str
) -> None:
    server = Session()

    async def script(peer: Peer) -> None:
        server.endpoint = endpoint.format(port=peer.writer.get_extra_info("sockname")[1])
        await server(peer)

    async with sse_client(script, "/x/sse") as on:
        on.start()
        await until(lambda: server.posts)
    assert server.posts[0].path == path


@pytest.mark.parametrize(
    "endpoint",
    ["http://evil.example/m", "https://127.0.0.1/m", "//evil.example/m", "http://[bad/m", "file:///etc/passwd"],
)
async def test_an_endpoint_at_another_origin_is_refused(loop_factory: LoopFactory, endpoint: str) -> None:
    assert "the endpoint event names another origin" in await refusal(Session(endpoint))


async def test_a_post_that_is_refused_fails_its_call_only(loop_factory: LoopFactory) -> None:
    server = Session(post_status="404 Not Found")
    async with sse_client(server) as on:
        with pytest.raises(Exception, match="HTTP 404 to the message"):
            await settled(on.start())
        server.post_status = "200 OK"
        exchange = on.start(2)
        await until(lambda: len(server.posts) == 2)
        await server.send(result(2))
        assert (await settled(exchange)).result
        assert not on.listener.ended


async def test_a_post_whose_connection_breaks_is_a_loss(loop_factory: LoopFactory) -> None:
    server = Session()

    async def script(peer: Peer) -> None:
        if server.streams:
            await peer.request()
        else:
            await server(peer)

    async with sse_client(script) as on:
        with pytest.raises(Exception, match="the connection closed before an answer"):
            await settled(on.start())


@pytest.mark.parametrize("how", ["end", "close"])
async def test_the_end_of_the_stream_ends_the_session(loop_factory: LoopFactory, how: str) -> None:
    server = Session()
    async with sse_client(server) as on:
        on.start()
        await until(lambda: server.posts)
        assert server.stream is not None
        if how == "end":
            await server.stream.say(b"0\r\n\r\n")
        else:
            server.stream.close()
        await on.listener.until(lambda: on.listener.ended)
        assert len(on.listener.ended) == 1
        with pytest.raises(Exception, match="the client is closed"):
            await settled(on.start(2))


async def test_closing_ends_the_stream_without_a_report(loop_factory: LoopFactory) -> None:
    server = Session()
    async with sse_client(server) as on:
        pass
    assert not on.listener.ended


async def test_a_stream_that_names_no_endpoint_is_given_up(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.events(b": hello\n\n", event(result()), end=False)
        await peer.gone()

    assert await refusal(script, seconds=0.2) == "the event stream opened but named no endpoint in time"


@pytest.mark.parametrize(
    ("status", "kind", "reason"),
    [
        ("404 Not Found", "text/plain", "no event stream: the server answered HTTP 404"),
        ("401 Unauthorized", "application/json", "no event stream: the server answered HTTP 401"),
        ("307 Moved", "text/plain", "no event stream: the server answered HTTP 307"),
        ("200 OK", "text/html", "no event stream: the server answered HTTP 200"),
        ("204 No Content", "text/plain", "no event stream: the server answered HTTP 204"),
    ],
)
async def test_what_is_no_event_stream_is_refused(
    loop_factory: LoopFactory, status: str, kind: str, reason: str
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"" if status[:3] == "204" else b"x", status, kind)

    assert await refusal(script) == reason


async def test_a_server_that_closes_at_once_is_unavailable(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()

    assert await refusal(script) == "the connection closed before an answer"


async def test_an_event_that_is_too_large_ends_the_session(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyplex.transports.sse.MAX_MESSAGE_BYTES", 1000)
    server = Session()
    async with sse_client(server) as on:
        await server.send(b"x" * 2000)
        await on.listener.until(lambda: on.listener.ended)
        assert "larger than 1000 bytes" in on.listener.ended[0]
