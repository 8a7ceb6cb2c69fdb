"""Where to dial for a URL: straight to its host, or to the proxy that the environment names (HTTP_PROXY, NO_PROXY)."""

import asyncio
import base64
import ssl
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import httptools
import msgspec

from polyplex.transports.origins import authority

_P = TypeVar("_P", bound=asyncio.BaseProtocol)


class Route(msgspec.Struct, frozen=True):
    """How to reach an origin. `prefix` goes before the path in the request line when a plain proxy is in between."""

    scheme: str
    host: str
    port: int
    dial: tuple[str, int]
    prefix: str = ""
    tunnel: bool = False
    proxy_headers: str = ""

    def explain(self, error: Exception) -> str:
        """An error of dialling, in words a user can act on."""
        where = f"{self.dial[0]}:{self.dial[1]}"
        if self.dial != (self.host, self.port):
            where += " (the proxy set in the environment)"
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"is not trusted: {error.verify_message}; set caFile for a private authority"
            return f"the certificate of {self.host}:{self.port} {reason}"
        if isinstance(error, ssl.SSLError):
            return f"TLS with {self.host}:{self.port} failed: {getattr(error, 'reason', None) or error}"
        if isinstance(error, TimeoutError):
            return f"no connection to {where} in time"
        return f"cannot connect to {where}: {getattr(error, 'strerror', None) or error}"


def route_for(url: str) -> Route:
    """The route to a URL's origin. Raises `ValueError` for what is no http(s) URL, and for an unusable proxy."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("not an http:// or https:// URL")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy is None or urllib.request.proxy_bypass(f"{parts.hostname}:{port}") or _bypass(parts.hostname):
        return Route(parts.scheme, parts.hostname, port, (parts.hostname, port))
    return _through(proxy, parts.scheme, parts.hostname, port)


def _bypass(host: str) -> bool:
    return bool(urllib.request.proxy_bypass(host))


def _through(proxy: str, scheme: str, host: str, port: int) -> Route:
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError(f"the proxy set in the environment is not an http:// one: {parts.scheme}://{parts.hostname}")
    dial = (parts.hostname, parts.port or 80)
    headers = ""
    if parts.username:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = f"Proxy-Authorization: Basic {base64.b64encode(secret.encode()).decode()}\r\n"
    if scheme == "https":
        return Route(scheme, host, port, dial, tunnel=True, proxy_headers=headers)
    return Route(scheme, host, port, dial, prefix=f"http://{authority(host, port)}", proxy_headers=headers)


class _Connect(asyncio.Protocol):
    """The CONNECT exchange with a proxy."""

    def __init__(self) -> None:
        self.done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._parser = httptools.HttpResponseParser(self)

    def data_received(self, data: bytes) -> None:
        """Part of asyncio's protocol interface."""
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserUpgrade, httptools.HttpParserError) as error:
            if not self.done.done():
                self.done.set_exception(OSError(f"the proxy does not speak HTTP: {error}"))

    def on_headers_complete(self) -> None:
        """Part of llhttp's callback interface."""
        if not self.done.done():
            self.done.set_result(self._parser.get_status_code())

    def connection_lost(self, exc: Exception | None) -> None:
        """Part of asyncio's protocol interface."""
        if not self.done.done():
            self.done.set_exception(OSError("the proxy closed the connection"))


async def open_tunnel(
    loop: asyncio.AbstractEventLoop, route: Route, context: ssl.SSLContext | None, factory: Callable[[], _P]
) -> tuple[Any, _P]:
    """A TLS connection through the proxy's CONNECT. Raises `OSError` naming what the proxy answered."""
    transport, handshake = await loop.create_connection(_Connect, *route.dial)
    name = authority(route.host, route.port)
    transport.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{route.proxy_headers}\r\n".encode())
    try:
        status = await handshake.done
        if not 200 <= status < 300:
            raise OSError(f"the proxy refused the connection with status {status}")
        protocol = factory()
        secured = await loop.start_tls(
            transport, protocol, context or ssl.create_default_context(), server_hostname=route.host
        )
    except BaseException:
        transport.abort()
        raise
    if secured is None:
        raise OSError("the proxy closed the connection")
    protocol.connection_made(secured)
    return secured, protocol
