"""Upstreams behind a proxy that the environment names: plain requests, CONNECT, and what goes round it."""

import asyncio
import base64
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from polyplex.errors import UpstreamUnavailable
from polyplex.transports.streamable_http import HttpEndpoint, StreamableHttpClient
from tests.process.conftest import LoopFactory
from tests.process.http_stage import Peer, RawServer, Received, raw_server, read_head
from tests.process.http_upstream import Listener, Upstream, result

VARIABLES = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the machine's own."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@asynccontextmanager
async def client_of(url: str, ca_file: str | None = None) -> AsyncGenerator[Upstream]:
    client = StreamableHttpClient(HttpEndpoint("docs", url, {"X-Key": "secret"}, ca_file, 5.0))
    listener = Listener()
    await client.open(listener)
    try:
        yield Upstream(client, listener, RawServer(answer))
    finally:
        await client.close()


async def answer(peer: Peer) -> None:
    """Answers every request."""
    while True:
        await peer.request()
        await peer.answer(result())


class Proxy:
    """A little forward proxy: answers plain requests itself, and joins CONNECTs to `port`."""

    def __init__(self, port: int = 0, refusal: str = "") -> None:
        self.port, self.refusal = port, refusal
        self.seen: list[Received] = []

    async def __call__(self, peer: Peer) -> None:
        request = await read_head(peer.reader)
        self.seen.append(request)
        if request.method != "CONNECT":
            await peer.reader.readexactly(int(request.headers.get("content-length", "0")))
            await peer.answer(result())
        elif self.refusal:
            await peer.say(self.refusal.encode())
        else:
            await self._join(peer)

    async def _join(self, peer: Peer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        await peer.say(b"HTTP/1.1 200 Connection established\r\nProxy-Agent: x\r\n\r\n")
        tasks = [asyncio.create_task(pump(peer.reader, writer)), asyncio.create_task(pump(reader, peer.writer))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            writer.close()


async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
        await sink.drain()


async def test_plain_requests_name_the_whole_url(loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = Proxy()
    async with raw_server(proxy) as server:
        monkeypatch.setenv("http_proxy", f"http://us%40er:pa%3Ass@127.0.0.1:{server.port}")
        async with client_of("http://docs.example/mcp?a=b") as on:
            assert (await on.call()).result
    (request,) = proxy.seen
    assert request.first == "POST http://docs.example:80/mcp?a=b HTTP/1.1"
    assert request.headers["host"] == "docs.example"
    assert base64.b64decode(request.headers["proxy-authorization"].removeprefix("Basic ")) == b"us@er:pa:ss"


async def test_tls_goes_through_a_tunnel(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    ca_file = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("docs.example").configure_cert(tls)
    async with raw_server(answer, tls) as origin:
        proxy = Proxy(origin.port)
        async with raw_server(proxy) as server:
            monkeypatch.setenv("HTTPS_PROXY", f"http://user:pw@127.0.0.1:{server.port}")
            async with client_of("https://docs.example/mcp", str(ca_file)) as on:
                assert (await on.call()).result
    (request,) = proxy.seen
    assert request.first == "CONNECT docs.example:443 HTTP/1.1"
    assert request.headers["host"] == "docs.example:443"
    assert "proxy-authorization" in request.headers
    assert "x-key" not in request.headers, "what is for the server is not for the proxy"


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        ("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "the proxy refused the connection with status 407"),
        ("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno", "the proxy refused the connection with status 502"),
        ("rubbish\r\n\r\n", "the proxy does not speak HTTP"),
        ("HTTP/1.1 200", "the proxy closed the connection"),
    ],
)
async def test_what_the_proxy_answers_is_told(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch, refusal: str, reason: str
) -> None:
    async with raw_server(Proxy(refusal=refusal)) as server:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{server.port}")
        async with client_of("https://docs.example/mcp") as on:
            said = await on.failure()
            assert said.startswith("UpstreamUnavailable")
            assert reason in said
            assert f"127.0.0.1:{server.port} (the proxy set in the environment)" in said


async def test_an_untrusted_certificate_behind_a_tunnel_is_the_origins(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("docs.example").configure_cert(tls)
    async with raw_server(answer, tls) as origin, raw_server(Proxy(origin.port)) as server:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{server.port}")
        async with client_of("https://docs.example/mcp") as on:
            assert "the certificate of docs.example:443 is not trusted" in await on.failure()


@pytest.mark.parametrize("bypass", ["127.0.0.1", "*", "other.example,127.0.0.1", "127.0.0.1:{port}"])
async def test_no_proxy_names_what_goes_straight(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch, bypass: str
) -> None:
    async with raw_server(answer) as origin:
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
        monkeypatch.setenv("no_proxy", bypass.format(port=origin.port))
        async with client_of(origin.url) as on:
            assert (await on.call()).result


@pytest.mark.parametrize("proxy", ["https://127.0.0.1:1", "socks5://127.0.0.1:1", "http://"])
async def test_a_proxy_that_cannot_be_used_is_named_before_anything_is_sent(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    with pytest.raises(UpstreamUnavailable, match="the proxy set in the environment is not an http:// one"):
        async with client_of("http://docs.example/mcp"):
            pass
