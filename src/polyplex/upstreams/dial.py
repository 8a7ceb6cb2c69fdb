"""From a server's configuration to a transport, with the fallbacks between HTTP transports."""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from polyplex.config import ServerConfig
from polyplex.errors import UpstreamRefused, UpstreamUnavailable
from polyplex.protocol.revisions import Era
from polyplex.transports.exchange import ClientTransport, Exchange, Receiver
from polyplex.transports.sse import SseClient
from polyplex.transports.stdio import ChildProcess, ExitStatus, safe_environment
from polyplex.transports.streamable_http import HttpEndpoint, StreamableHttpClient
from polyplex.upstreams.connection import Connection, Handler
from polyplex.upstreams.handshake import Identity, open_session

EXIT_SECONDS: Final = 2.0
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024


class StdioTransport:
    """A child process as a client transport."""

    def __init__(self, config: ServerConfig, on_stderr: Callable[[str], None]) -> None:
        self._config = config
        self._on_stderr = on_stderr
        self._receiver: Receiver
        self.child: ChildProcess | None = None
        self._unsent: list[Exchange] = []

    async def open(self, receiver: Receiver) -> None:
        """Start the process."""
        self._receiver = receiver
        config = self._config
        self.child = ChildProcess(
            config.name,
            config.command,
            config.args,
            safe_environment(os.environ, config.env, config.options.inherit_env),
            config.cwd,
            self._frame,
            self._exited,
            on_stderr_line=self._on_stderr,
        )
        await self.child.start()

    def _frame(self, frame: bytes) -> None:
        self._receiver.received(frame, None)

    def _exited(self, status: ExitStatus) -> None:
        tail = self.child.stderr_tail()[-3:] if self.child is not None else []
        said = f"; its last words: {' | '.join(tail)}" if tail else ""
        self._fail_unsent(f"{status}{said}")
        self._receiver.closed(f"{status}{said}")

    def _fail_unsent(self, reason: str) -> None:
        unsent, self._unsent = self._unsent, []
        for exchange in unsent:
            self._receiver.failed(exchange, UpstreamUnavailable(self._config.name, reason))

    def send(
        self, frame: bytes, exchange: Exchange | None = None, headers: list[tuple[str, str]] | None = None
    ) -> None:
        """Write a frame to its standard input."""
        child = self.child
        if child is not None and child.buffered_bytes > MAX_UNREAD_BYTES:
            if exchange is not None:
                reason = f"it does not read its input; {child.buffered_bytes >> 20} MiB wait to be written"
                self._receiver.failed(exchange, UpstreamRefused(self._config.name, reason))
            return
        try:
            if child is not None:
                child.write(frame)
        except UpstreamUnavailable:
            if exchange is not None:  # the exit status, which follows, says why
                self._unsent.append(exchange)
                asyncio.get_running_loop().call_later(EXIT_SECONDS, self._fail_unsent, "its standard input is closed")

    def abandon(self, exchange: Exchange) -> None:
        """Nothing to close: the answer, if it comes, is dropped."""

    def established(self, revision: str, *, stateful: bool) -> None:
        """The handshake is over; this transport needs nothing from it."""

    @property
    def cancels_by_closing(self) -> bool:
        """Never: answers share one stream."""
        return False

    async def close(self) -> None:
        """Stop the process, gently first."""
        if self.child is not None:
            await self.child.stop()


async def connect(
    config: ServerConfig, handler: Handler, identity: Identity, first: Era, on_stderr: Callable[[str], None]
) -> Connection:
    """A session with a server. Raises `UpstreamUnavailable` saying what was tried and why it failed."""
    seconds = config.options.connect_timeout_seconds
    if config.kind == "stdio":
        return await _open(config.name, StdioTransport(config, on_stderr), handler, identity, first, seconds)
    endpoint = HttpEndpoint(config.name, config.url, dict(config.headers), config.options.ca_file, min(seconds, 10.0))
    if config.kind == "sse":
        return await _open(config.name, SseClient(endpoint), handler, identity, Era.LEGACY, seconds)
    try:
        return await _open(config.name, StreamableHttpClient(endpoint), handler, identity, first, seconds)
    except UpstreamUnavailable as error:
        if not any(f"HTTP {status}" in error.message for status in (400, 404, 405)):
            raise
        return await _fall_back(endpoint, handler, identity, seconds, error)


async def _fall_back(
    endpoint: HttpEndpoint, handler: Handler, identity: Identity, seconds: float, first: UpstreamUnavailable
) -> Connection:
    """A URL that refuses POST may be that of an HTTP+SSE server (2025-11-25, "Backwards Compatibility")."""
    try:
        return await _open(endpoint.server, SseClient(endpoint), handler, identity, Era.LEGACY, seconds)
    except UpstreamUnavailable as error:
        text = f"{first.message}; as HTTP+SSE: {error.message}"
        raise UpstreamUnavailable(endpoint.server, text) from None


async def _open(
    server: str, transport: ClientTransport, handler: Handler, identity: Identity, first: Era, seconds: float
) -> Connection:
    connection = Connection(server, transport, handler)
    try:
        async with asyncio.timeout(seconds):
            await transport.open(connection)
        await open_session(connection, identity, first, seconds)
    except TimeoutError:
        await connection.close()
        raise UpstreamUnavailable(server, f"no connection within {seconds:g} s") from None
    except BaseException:
        await connection.close()
        raise
    if isinstance(transport, StreamableHttpClient):
        transport.listen()
    return connection
