"""Streamable HTTP, client half: what becomes of answers of every kind."""

import asyncio
import gzip
import json
import zlib

import pytest

from polyplex.errors import UpstreamUnavailable
from polyplex.transports import http_sinks
from polyplex.transports.streamable_http import HttpEndpoint, StreamableHttpClient
from tests.process.conftest import LoopFactory
from tests.process.http_stage import DEADLINE_SECONDS, Peer, Received, Script, until
from tests.process.http_upstream import LEGACY, MODERN, Listener, event, result, settled, upstream

NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{}}'


def answering(body: bytes, status: str = "200 OK", kind: str = "application/json", extra: str = "") -> Script:
    """A server that gives the same answer to every request."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer(body, status, kind, extra)

    return script


async def test_what_a_request_carries(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []

    async def script(peer: Peer) -> None:
        while True:
            seen.append(await peer.request())
            await peer.answer(result(len(seen)))

    async with upstream(script, headers={"X-Key": "s", "Host": "evil", "Content-Length": "1"}) as on:
        await on.call()
        on.client.established(MODERN, stateful=False)
        await on.call(headers=[("Mcp-Method", "tools/call")])
    first, second = seen
    assert first.first == "POST /mcp HTTP/1.1"
    assert first.headers["host"] == f"127.0.0.1:{on.server.port}"
    assert first.headers["accept"] == "application/json, text/event-stream"
    assert first.headers["content-type"] == "application/json"
    assert first.headers["x-key"] == "s"
    assert "mcp-protocol-version" not in first.headers
    assert json.loads(first.body) == {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    assert second.headers["mcp-protocol-version"] == MODERN
    assert second.headers["mcp-method"] == "tools/call"
    assert len(on.server.peers) == 1


@pytest.mark.parametrize("headers", [{"X": "a\r\nEvil: 1"}, {"X\nEvil": "1"}, {"X": "a\0b"}])
async def test_a_header_that_smuggles_another_is_refused(loop_factory: LoopFactory, headers: dict[str, str]) -> None:
    client = StreamableHttpClient(HttpEndpoint("docs", "http://127.0.0.1:9/", headers))
    with pytest.raises(UpstreamUnavailable, match="holds a line break"):
        await client.open(Listener())


@pytest.mark.parametrize(
    ("url", "reason"),
    [("ftp://a/", "not an http"), ("http://", "not an http"), ("http://a:99999/", "Port out of range")],
)
async def test_a_url_that_is_none_is_refused(loop_factory: LoopFactory, url: str, reason: str) -> None:
    with pytest.raises(UpstreamUnavailable, match=reason):
        await StreamableHttpClient(HttpEndpoint("docs", url, {})).open(Listener())


async def test_a_ca_file_that_is_missing_is_named(loop_factory: LoopFactory) -> None:
    client = StreamableHttpClient(HttpEndpoint("docs", "https://127.0.0.1/", {}, ca_file="/nowhere/ca.pem"))
    with pytest.raises(UpstreamUnavailable, match="caFile /nowhere/ca.pem"):
        await client.open(Listener())


@pytest.mark.parametrize(
    ("status", "body", "kind", "failure"),
    [
        ("400 Bad Request", b"no", "text/plain", "UpstreamRefused: docs: the server answered HTTP 400 (no)"),
        ("401 Unauthorized", b"", "text/plain", "UpstreamRefused: docs: the server answered HTTP 401; it wants cred"),
        ("403 Forbidden", b"<b>", "text/html", "UpstreamRefused: docs: the server answered HTTP 403; it wants cred"),
        ("404 Not Found", b"", "text/plain", "UpstreamRefused: docs: the server answered HTTP 404"),
        ("405 Method Not Allowed", b"", "text/plain", "UpstreamRefused: docs: the server answered HTTP 405"),
        ("429 Too Many Requests", b"slow", "text/plain", "UpstreamBusy: docs: the server answered HTTP 429 (slow)"),
        ("408 Request Timeout", b"", "text/plain", "UpstreamBusy: docs: the server answered HTTP 408"),
        ("425 Too Early", b"", "text/plain", "UpstreamBusy: docs: the server answered HTTP 425"),
        ("500 Oops", b"", "text/plain", "UpstreamLost: docs: the server answered HTTP 500"),
        ("502 Bad Gateway", b"<html>", "text/html", "UpstreamLost: docs: the server answered HTTP 502"),
        ("503 Busy", b"later", "text/plain", "UpstreamLost: docs: the server answered HTTP 503 (later)"),
        ("200 OK", b"", "application/json", "UpstreamLost: docs: the server answered 200 without a body"),
        ("202 Accepted", b"", "text/plain", "UpstreamLost: docs: the server answered 202 without a body"),
        ("200 OK", b"<html>", "text/html", "UpstreamLost: docs: the server answered with text/html, not JSON"),
        ("200 OK", NOTE, "application/json", "UpstreamLost: docs: the answer holds no response to the request"),
        ("301 Moved", b"", "text/plain", "UpstreamRefused: docs: the server answered HTTP 301; it moved to /new"),
        ("307 Moved", b"", "text/plain", "UpstreamRefused: docs: the server answered HTTP 307; it moved to http://b"),
    ],
)
async def test_failures_are_told_apart(
    loop_factory: LoopFactory, status: str, body: bytes, kind: str, failure: str
) -> None:
    location = "Location: http://b/new\r\n" if status[:3] == "307" else "Location: /new\r\n"
    async with upstream(answering(body, status, kind, location)) as on:
        assert (await on.failure()).startswith(failure)


@pytest.mark.parametrize(("wait", "said"), [("7", "; it asks to wait 7 s"), ("Wed, 21 Oct 2026 07:28:00 GMT", "")])
@pytest.mark.parametrize("status", ["429 Too Many Requests", "503 Busy"])
async def test_the_time_that_a_server_asks_for_is_told(
    loop_factory: LoopFactory, status: str, wait: str, said: str
) -> None:
    async with upstream(answering(b"", status, "text/plain", f"Retry-After: {wait}\r\n")) as on:
        assert (await on.failure()).endswith(f"the server answered HTTP {status[:3]}{said}")


async def test_a_server_that_cannot_be_reached_is_unavailable(loop_factory: LoopFactory) -> None:
    async with upstream(answering(b"")) as gone:
        url = gone.server.url
    async with upstream(answering(b""), url=url) as on:
        assert (await on.failure()).startswith("UpstreamUnavailable: docs: cannot connect to 127.0.0.1")


async def test_a_connection_that_breaks_is_a_loss(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()

    async with upstream(script) as on:
        assert await on.failure() == "UpstreamLost: docs: the connection closed before an answer"


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "500 Oops"])
async def test_an_error_response_counts_whatever_the_status(loop_factory: LoopFactory, status: str) -> None:
    body = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}'
    async with upstream(answering(body, status)) as on:
        assert (await on.call()).error == b'{"code":-32601,"message":"no such method"}'


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate"])
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_compressed_answers_are_read_although_not_asked_for(
    loop_factory: LoopFactory, coding: str, kind: str
) -> None:
    plain = result() if kind == "application/json" else event(result())
    body = gzip.compress(plain) if "gzip" in coding else zlib.compress(plain)
    async with upstream(answering(body, kind=kind, extra=f"Content-Encoding: {coding}\r\n")) as on:
        assert (await on.call()).result == b'{"ok":true}'


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_broken_compressed_answer_fails_its_call_only(loop_factory: LoopFactory, kind: str) -> None:
    async def script(peer: Peer) -> None:
        while True:
            identifier = json.loads((await peer.request()).body)["id"]
            plain = result(identifier) if kind == "application/json" else event(result(identifier))
            body = bytearray(gzip.compress(plain, mtime=0))
            body[12] ^= 0xFF if identifier % 2 else 0
            await peer.answer(bytes(body), kind=kind, extra="Content-Encoding: gzip\r\n")

    async with upstream(script) as on:
        for _ in range(3):
            assert (await on.failure()).startswith("UpstreamLost: docs: the compressed body is broken")
            assert (await on.call()).result == b'{"ok":true}'


# -- redirects
async def test_a_redirect_within_the_origin_is_followed_with_the_body(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            seen.append(request)
            if request.path == "/mcp":
                await peer.answer(b"gone", "308 Permanent Redirect", "text/plain", "Location: /mcp/?a=b c\r\n")
            else:
                await peer.answer(result(len(seen) - 1))

    async with upstream(script) as on:
        assert (await on.call(headers=[("Mcp-Method", "x")])).result
        assert (await on.call()).result
    assert [request.path for request in seen] == ["/mcp", "/mcp/?a=b%20c", "/mcp/?a=b%20c"]
    assert seen[0].body == seen[1].body
    assert seen[1].headers["mcp-method"] == "x"


@pytest.mark.parametrize(
    "location", ["https://127.0.0.1:{port}/", "http://localhost:{port}/", "http://127.0.0.1:1/", "http://[bad/", "//x/"]
)
async def test_a_redirect_to_another_origin_is_not_followed(loop_factory: LoopFactory, location: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        where = location.format(port=peer.writer.get_extra_info("sockname")[1])
        await peer.answer(b"", "307 Temporary Redirect", extra=f"Location: {where}\r\n")

    async with upstream(script) as on:
        assert "the server answered HTTP 307; it moved to" in await on.failure()


async def test_redirects_in_a_circle_end(loop_factory: LoopFactory) -> None:
    count = 0

    async def script(peer: Peer) -> None:
        nonlocal count
        while True:
            await peer.request()
            count += 1
            await peer.answer(b"", "308 Permanent Redirect", extra="Location: /mcp\r\n")

    async with upstream(script) as on:
        assert "HTTP 308" in await on.failure()
    assert count == http_sinks.MAX_REDIRECTS + 1


# -- sessions
async def test_the_session_is_taken_from_initialize_and_ended_with_delete(loop_factory: LoopFactory) -> None:
    seen: list[Received] = []

    async def script(peer: Peer) -> None:
        while True:
            seen.append(await peer.request())
            await peer.answer(result(len(seen)), extra="Mcp-Session-Id: one\r\n" if len(seen) < 3 else "")

    async with upstream(script) as on:
        await on.call()
        assert on.client.session_id is None, "only initialize begins a session"
        await on.call("initialize")
        on.client.established(LEGACY, stateful=True)
        await on.call()
    assert [request.method for request in seen] == ["POST", "POST", "POST", "DELETE"]
    assert [request.headers.get("mcp-session-id") for request in seen] == [None, None, "one", "one"]
    assert seen[3].headers["mcp-protocol-version"] == LEGACY


@pytest.mark.parametrize("identifier", ["with space", "é", "x" * 2000])
async def test_a_session_id_that_is_none_is_not_taken(loop_factory: LoopFactory, identifier: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        head = f"HTTP/1.1 200 OK\r\nMcp-Session-Id: {identifier}\r\nContent-Length: {len(result())}\r\n\r\n"
        await peer.say(head.encode() + result())

    async with upstream(script) as on:
        await on.call("initialize")
        assert on.client.session_id is None


@pytest.mark.parametrize(
    ("status", "body", "lost"),
    [
        ("404 Not Found", b"", True),
        ("404 Not Found", b'{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}', True),
        ("400 Bad Request", b"No valid session ID provided", True),
        ("400 Bad Request", b"bad arguments", False),
        ("410 Gone", b"", False),
    ],
)
async def test_the_loss_of_a_session_is_seen(loop_factory: LoopFactory, status: str, body: bytes, lost: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(result(), extra="Mcp-Session-Id: one\r\n")
        await peer.request()
        await peer.answer(body, status)
        await peer.request()  # DELETE
        await peer.answer()

    async with upstream(script) as on:
        await on.call("initialize")
        said = await on.failure()
        assert said.startswith("LookupError" if lost else "UpstreamRefused")
        assert len(on.listener.lost) == lost


async def test_closing_does_not_wait_for_ever_for_the_answer_to_delete(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyplex.transports.streamable_http.DELETE_SECONDS", 0.05)
    methods: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(result(), extra="Mcp-Session-Id: one\r\n")
        methods.append((await peer.request()).method)
        await peer.gone()

    async with upstream(script) as on:
        await on.call("initialize")
    assert methods == ["DELETE"]


async def test_a_redirected_delete_is_not_posted(loop_factory: LoopFactory) -> None:
    methods: list[str] = []

    async def script(peer: Peer) -> None:
        while True:
            methods.append((await peer.request()).method)
            if methods[-1] == "DELETE":
                await peer.answer(b"", "307 Moved", extra="Location: /other\r\n")
            else:
                await peer.answer(result(), extra="Mcp-Session-Id: one\r\n")

    async with upstream(script) as on:
        await on.call("initialize")
    assert methods == ["POST", "DELETE"]


# -- large results
async def test_a_large_result_streams_and_a_slow_taker_holds_the_server_back(loop_factory: LoopFactory) -> None:
    text = b'{"x":"' + b"x" * (48 << 20) + b'"}'
    body = result(text=text.decode())
    written = 0

    async def script(peer: Peer) -> None:
        nonlocal written
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        for start in range(0, len(body), 1 << 20):
            await peer.say(body[start : start + (1 << 20)])
            written += 1
        await peer.request()
        await peer.answer(result(2))

    async with upstream(script) as on:
        stream = (await on.call(streamable=True)).stream
        assert stream is not None
        assert stream.length == len(text) + 1
        assert not on.client._posts
        held, turns = -1, 0
        while turns < 50:
            held, turns = written, turns + 1 if held == written else 0
            await asyncio.sleep(0.001)
        assert written < 24
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await stream.read() == text + b"}"
        assert (await on.call()).result == b'{"ok":true}'
        assert len(on.server.peers) == 1


async def test_a_large_result_that_is_cut_short_says_so(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
        await peer.say(result()[:-1])

    async with upstream(script) as on:
        stream = (await on.call(streamable=True)).stream
        assert stream is not None
        with pytest.raises(Exception, match="in the middle of the answer"):
            await stream.read()


async def test_a_large_result_that_nobody_wants_any_more_closes_its_connection(loop_factory: LoopFactory) -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n")
        await peer.say(result())
        await peer.gone()
        left.set()

    async with upstream(script) as on:
        stream = (await on.call(streamable=True)).stream
        assert stream is not None
        stream.abort()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await left.wait()
        assert not on.client._posts


@pytest.mark.parametrize(
    "start",
    [
        b'{ "jsonrpc": "2.0", "id": 1, "result": "',
        b'{"result":"',
        b'{"jsonrpc":"2.0","id":1,"error":"',
        b'{"jsonrpc":"2.0","id":1,"result":"',
    ],
)
async def test_a_large_answer_in_another_form_is_gathered(loop_factory: LoopFactory, start: bytes) -> None:
    body = start + b"x" * 300_000 + b'"' + (b"}" if b"jsonrpc" in start else b',"id":1,"jsonrpc":"2.0"}')
    async with upstream(answering(body)) as on:
        reply = await on.call(streamable=True)
        assert len(reply.result or reply.error or b"") == 300_002


async def test_an_error_page_without_end_is_cut(loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sinks, "MAX_ERROR_BYTES", 100_000)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 503 Busy\r\nContent-Type: text/plain\r\n\r\n")
        while True:
            await peer.say(b"sorry " * 10_000)

    async with upstream(script) as on:
        assert (await on.failure()).startswith("UpstreamLost: docs: the server answered HTTP 503 (sorry")


async def test_an_answer_without_end_is_cut(loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_sinks, "MAX_MESSAGE_BYTES", 100_000)

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            await peer.say(b"{" * 10_000)

    async with upstream(script) as on:
        assert await on.failure() == "UpstreamLost: docs: the body is larger than 100000 bytes"


# -- giving up
async def test_abandoning_closes_the_connection_of_the_call_alone(loop_factory: LoopFactory) -> None:
    left: list[int] = []
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        request = await peer.request()
        identifier = json.loads(request.body)["id"]
        if identifier == 1:
            await peer.gone()
            left.append(identifier)
        else:
            await go_on.wait()
            await peer.answer(result(identifier))
            await peer.gone()

    async with upstream(script, MODERN) as on:
        assert on.client.cancels_by_closing
        first, second = on.start(), on.start()
        await until(lambda: len(on.server.peers) == 2)
        on.client.abandon(first)
        await until(lambda: left)
        go_on.set()
        assert (await settled(second)).result
        assert not first.done()


async def test_abandoning_what_has_not_been_sent_sends_nothing(loop_factory: LoopFactory) -> None:
    seen: list[int] = []

    async def script(peer: Peer) -> None:
        while True:
            seen.append(json.loads((await peer.request()).body)["id"])
            await peer.answer(result(seen[-1]))

    async with upstream(script) as on:
        on.client.abandon(on.start())
        assert (await on.call()).result
        assert seen == [2]


async def test_closing_fails_what_is_under_way(loop_factory: LoopFactory) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    async with upstream(script) as on:
        exchange = on.start()
        await until(lambda: on.server.peers)
    with pytest.raises(Exception, match="closed"):
        await settled(exchange)
